#include "regatta/network/probe/internal/packet_variant.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "regatta/model/topo/addresses.h"
#include "regatta/network/probe/internal/batch.h"

namespace regatta::probe {
namespace {

using diag::PacketVariant;

TEST(PacketVariants, AreSentOnceInEachCycleAndNotInTheSameRound) {
  constexpr int kRounds = 24;
  for (std::uint32_t probe = 0; probe < 60; ++probe)
    for (std::int64_t cycle = 1000; cycle < 1003; ++cycle) {
      int large = 0;
      int user = 0;
      for (std::int64_t round = cycle * kRounds; round < (cycle + 1) * kRounds; ++round) {
        const bool is_large = is_due(PacketVariant::kLarge, probe, round, kRounds);
        const bool is_user = is_due(PacketVariant::kUser, probe, round, kRounds);
        EXPECT_FALSE(is_large && is_user);
        large += is_large ? 1 : 0;
        user += is_user ? 1 : 0;
      }
      EXPECT_EQ(large, 1);
      EXPECT_EQ(user, 1);
    }
}

TEST(PacketVariants, FitIntoTheMtuAndHoldAPayload) {
  for (const int mtu : {0, 576, 1000, 1500, 9000, 65536})
    for (std::uint32_t probe = 0; probe < 8; ++probe)
      for (const auto variant : {PacketVariant::kLarge, PacketVariant::kUser}) {
        const std::size_t bytes = payload_bytes(variant, probe, mtu);
        EXPECT_GE(bytes, sizeof(Payload));
        EXPECT_LE(bytes, static_cast<std::size_t>(kPayloadBytesMax));
        EXPECT_LE(bytes, static_cast<std::size_t>(std::max(mtu, 60)) - 28);
      }
  EXPECT_EQ(payload_bytes(PacketVariant::kLarge, 0, 1500), 1472U);
  EXPECT_EQ(payload_bytes(PacketVariant::kUser, 0, 1500), sizeof(Payload));
  EXPECT_EQ(payload_bytes(PacketVariant::kUser, 3, 1500), 1472U);
}

TEST(PacketVariants, AreKnownByTheirMagicNumbers) {
  for (const auto variant : {PacketVariant::kLarge, PacketVariant::kUser}) {
    EXPECT_EQ(variant_of(probe_magic(variant)), variant);
    EXPECT_EQ(variant_of(answer_magic(variant)), variant);
  }
  for (const std::uint32_t magic : {kProbeMagic, kAnswerMagic, kControlMagic, 0U})
    EXPECT_EQ(variant_of(magic), std::nullopt);
  EXPECT_EQ(type_of_service(PacketVariant::kUser), 0);
  EXPECT_EQ(type_of_service(PacketVariant::kLarge), topo::kProbeTos);
}

}  // namespace
}  // namespace regatta::probe
