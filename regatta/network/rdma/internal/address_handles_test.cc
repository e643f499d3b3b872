#include "regatta/network/rdma/internal/address_handles.h"

#include <set>

#include <gtest/gtest.h>

namespace regatta::rdma {
namespace {

constexpr Gid kPeer{1};
constexpr Gid kOther{2};

// A device whose handles are numbers.
struct FakeDevice {
  std::set<ibv_ah*> alive;
  std::uintptr_t made = 0;
  std::size_t tried = 0;
  bool is_reachable = true;

  AddressHandles::Verbs verbs() {
    return {.make = [this](const Gid&, std::uint16_t) -> ibv_ah* {
              ++tried;
              if (!is_reachable) return nullptr;
              return *alive.insert(reinterpret_cast<ibv_ah*>(++made)).first;
            },
            .free = [this](ibv_ah* one) { EXPECT_EQ(alive.erase(one), 1U); }};
  }
};

TEST(AddressHandles, AreUsedAgainWhileTheOtherEndIsHeard) {
  FakeDevice device;
  {
    AddressHandles handles(device.verbs());
    ibv_ah* const first = handles.find(kPeer, 50000, {0});
    ASSERT_NE(first, nullptr);
    EXPECT_NE(handles.find(kPeer, 50001, {0}), first);
    EXPECT_NE(handles.find(kOther, 50000, {0}), first);
    for (double now = 1; now < 60; ++now) {
      handles.hear(kPeer, {now});
      EXPECT_EQ(handles.find(kPeer, 50000, {now}), first);
    }
    EXPECT_EQ(device.made, 3U);
  }
  EXPECT_TRUE(device.alive.empty());
}

TEST(AddressHandles, AreMadeAnewWhereNobodyIsHeard) {
  FakeDevice device;
  AddressHandles handles(device.verbs(), {.silence = {5}});
  ibv_ah* const first = handles.find(kPeer, 50000, {0});
  handles.hear(kPeer, {3});
  EXPECT_EQ(handles.find(kPeer, 50000, {7}), first);
  ibv_ah* const second = handles.find(kPeer, 50000, {8});
  EXPECT_NE(second, first);
  // Packets may still need the first one.
  EXPECT_EQ(device.alive.count(first), 1U);
  handles.free_replaced();
  EXPECT_EQ(device.alive.count(first), 0U);
  EXPECT_EQ(handles.find(kPeer, 50000, {12}), second);
}

TEST(AddressHandles, StayWhereTheNeighbourDoesNotAnswerAndAskSeldom) {
  FakeDevice device;
  AddressHandles handles(device.verbs(), {.silence = {5}});
  ibv_ah* const first = handles.find(kPeer, 50000, {0});
  device.is_reachable = false;
  for (double now = 0; now < 20; now += 0.01) {
    EXPECT_EQ(handles.find(kPeer, 50000, {now}), first);
    EXPECT_EQ(handles.find(kOther, 50000, {now}), nullptr);
  }
  EXPECT_LE(device.tried, 1U + 3 + 4);
}

TEST(AddressHandles, WaitForOneOfManySilentPeersAtATime) {
  FakeDevice device;
  AddressHandles handles(device.verbs(), {.silence = {5}});
  for (std::uint8_t peer = 1; peer <= 50; ++peer)
    handles.find(Gid{peer}, 50000, {0});
  device.is_reachable = false;
  device.tried = 0;
  for (double now = 0; now < 20; now += 0.01)
    for (std::uint8_t peer = 1; peer <= 50; ++peer)
      EXPECT_NE(handles.find(Gid{peer}, 50000, {now}), nullptr);
  EXPECT_LE(device.tried, 3U) << "each may take a second";
}

TEST(AddressHandles, AreBoundedAndThoseGoThatWereNotUsedForLongest) {
  FakeDevice device;
  AddressHandles handles(device.verbs(), {.most = 64});
  ibv_ah* const kept = handles.find(kOther, 50000, {0});
  for (int i = 0; i < 1000; ++i) {
    Gid gid{7};
    gid[14] = static_cast<std::uint8_t>(i / 256);
    gid[15] = static_cast<std::uint8_t>(i % 256);
    ASSERT_NE(handles.find(gid, 50000, {1e-3 * i}), nullptr);
    ASSERT_EQ(handles.find(kOther, 50000, {1e-3 * i}), kept);
    handles.free_replaced();
    ASSERT_LE(handles.size(), 64U);
    ASSERT_EQ(device.alive.size(), handles.size());
  }
}

}  // namespace
}  // namespace regatta::rdma
