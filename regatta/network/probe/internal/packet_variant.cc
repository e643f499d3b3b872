#include "regatta/network/probe/internal/packet_variant.h"

#include <algorithm>
#include <array>

#include <netinet/ip.h>
#include <netinet/udp.h>

#include "regatta/model/topo/addresses.h"
#include "regatta/network/probe/internal/batch.h"

namespace regatta::probe {
namespace {

constexpr std::uint32_t kFirstProbeMagic = 0x52505241;  // "RPRA"
constexpr std::uint32_t kFirstAnswerMagic = 0x52505261;
constexpr std::array kVariants = {diag::PacketVariant::kLarge, diag::PacketVariant::kUser};
// Sizes of users' packets, besides the largest one.
constexpr std::array<std::size_t, 3> kUserBytes = {sizeof(Payload), 512, 1024};

}  // namespace

bool is_due(diag::PacketVariant variant, std::uint32_t probe, std::int64_t round, int rounds) {
  const int offset = variant == diag::PacketVariant::kLarge ? 0 : rounds / 2;
  return (round + probe + offset) % rounds == 0;
}

std::size_t payload_bytes(diag::PacketVariant variant, std::uint32_t probe, int mtu) {
  constexpr int kHeaders = sizeof(iphdr) + sizeof(udphdr);
  const auto most = static_cast<std::size_t>(
      std::clamp(mtu - kHeaders, static_cast<int>(sizeof(Payload)), kPayloadBytesMax));
  const std::size_t kind = probe % (kUserBytes.size() + 1);
  if (variant == diag::PacketVariant::kLarge || kind == kUserBytes.size()) return most;
  return std::min(kUserBytes[kind], most);
}

std::uint8_t type_of_service(diag::PacketVariant variant) {
  return variant == diag::PacketVariant::kUser ? 0 : topo::kProbeTos;
}

std::uint32_t probe_magic(diag::PacketVariant variant) {
  return kFirstProbeMagic + static_cast<std::uint32_t>(variant);
}

std::uint32_t answer_magic(diag::PacketVariant variant) {
  return kFirstAnswerMagic + static_cast<std::uint32_t>(variant);
}

std::optional<diag::PacketVariant> variant_of(std::uint32_t magic) {
  for (const diag::PacketVariant variant : kVariants)
    if (magic == probe_magic(variant) || magic == answer_magic(variant)) return variant;
  return std::nullopt;
}

}  // namespace regatta::probe
