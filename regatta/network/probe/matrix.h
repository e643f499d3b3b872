// probe/matrix.h: who measures whom: probes on pinned 5-tuples, chosen by the hash of the switches
// (fabric/traffic.h) so that the path of each and of its answer is known, and all paths together
// cover every link in both directions. Pure and deterministic.
//
// Several paths over each link, as different elsewhere as they can be, are what tells faults apart
// (Peng et al., "deTector: a topology-aware monitoring system for data center networks", ATC 2017).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/fabric/routes.h"
#include "regatta/network/fabric/traffic.h"

namespace regatta::probe {

// Below the ports that a kernel hands out by itself.
inline constexpr std::uint16_t kProbePort = 27900;        // where probes and answers arrive
inline constexpr std::uint16_t kFirstSourcePort = 27901;  // what they leave from, and the next ones

// From one NIC to the one of the same number in another server: the rail that routes keep to.
struct Probe {
  LinkId from;
  LinkId to;
  fabric::FiveTuple flow;
};

// Of its answer: from the same port to the same, so that a server takes in all of them at one.
fabric::FiveTuple answer_to(const fabric::FiveTuple& probe);

struct Matrix {
  std::vector<Probe> probes;
  // Directed links (fabric::number_of) in order, each ending at a NIC: of probe k there 2k, of its
  // answer 2k + 1.
  fabric::Paths paths;
};

// What carries probes. By RDMA they leave from the UDP ports that RoCEv2 has, to its own.
enum class Transport : std::uint8_t { kUdp, kRdma };
inline constexpr std::uint16_t kFirstRdmaSourcePort = 0xC001;
inline constexpr std::uint16_t kRdmaPort = 4791;

struct MatrixOptions {
  std::uint32_t probes_per_nic = 6;   // that it sends at least; more where links need them
  std::uint32_t paths_per_link = 12;  // different ones, where there are as many
  std::uint16_t ports = 16;           // source ports from the first one on
  Transport transport = Transport::kUdp;
  fabric::HashPolicy policy = fabric::HashPolicy::kFields;
};

// `seeds` by NodeId, of the switches' hashes. Cost: about 100 hashes for each NIC, and for each
// link that needs more paths as many as equally good paths lead past it.
Matrix plan_matrix(const topo::Graph& graph, const fabric::Routes& routes,
                   std::span<const std::uint32_t> seeds, const MatrixOptions& options = {});

// The proof: which paths cover each link, and what the probes cannot tell apart.
struct Coverage {
  std::vector<std::uint32_t> first;    // per directed link into `paths`, and the end
  std::vector<std::uint32_t> paths;    // numbers of Matrix::paths, ascending for each link
  std::vector<std::uint32_t> missing;  // directed links that no path covers
  std::vector<std::uint32_t> thin;     // those with fewer than three
  // Directed links that every path shares with another link: {link, the other}. If both break, the
  // first is hidden behind the second; if they share all paths, also one cannot be told from the
  // other.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> hidden;
  // Links that no single other hides but two together: of three faults one is overlooked.
  std::vector<std::uint32_t> hidden_by_two;

  std::span<const std::uint32_t> paths_of(std::uint32_t link) const {
    return std::span(paths).subspan(first[link], first[link + 1] - first[link]);
  }
};

Coverage cover(const topo::Graph& graph, const Matrix& matrix);

// "leaf0-spine1 from leaf0 to spine1".
std::string link_text(const topo::Graph& graph, std::uint32_t directed_link);

// "36 of 36 directed links, by 4 to 9 paths each", and a line for each thing that is not as wished.
std::string coverage_text(const topo::Graph& graph, const Coverage& coverage);
// A line for each pair that is always crossed together, and for each link that two others hide.
std::string overlaps_text(const topo::Graph& graph, const Coverage& coverage);

}  // namespace regatta::probe
