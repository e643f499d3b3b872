// probe/matrix.h: which NIC probes which: probes on pinned 5-tuples, chosen by the hash of the
// switches (fabric/traffic.h) so that the path of each and of its answer is known, and all paths
// together cover every link in both directions. Pure and deterministic.
//
// Several paths over each link, as different elsewhere as possible, tell faults apart (Peng et al.,
// "deTector: a topology-aware monitoring system for data center networks", ATC 2017).
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

// Below the ephemeral ports of a kernel.
inline constexpr std::uint16_t kProbePort = 27900;        // where probes and answers arrive
inline constexpr std::uint16_t kFirstSourcePort = 27901;  // the first of the source ports

// From one NIC to the NIC of the same number in another server: the rail that routes keep to.
struct Probe {
  LinkId from;
  LinkId to;
  fabric::FiveTuple flow;
};

// Flow of its answer: same ports, so that a server receives all answers on one port.
fabric::FiveTuple answer_to(const fabric::FiveTuple& probe);

struct Matrix {
  std::vector<Probe> probes;
  // Directed links (fabric::number_of) in order, each path ending at a NIC: 2k is the path of probe
  // k, 2k + 1 that of its answer.
  fabric::Paths paths;
};

// Carrier of the probes. By RDMA they use RoCEv2 UDP source ports and its destination port.
enum class Transport : std::uint8_t { kUdp, kRdma };
inline constexpr std::uint16_t kFirstRdmaSourcePort = 0xC001;
inline constexpr std::uint16_t kRdmaPort = 4791;

struct MatrixOptions {
  std::uint32_t probes_per_nic = 6;   // sent at least; more where links need them
  std::uint32_t paths_per_link = 12;  // different ones, if there are as many
  std::uint16_t ports = 16;           // source ports from the first one on
  Transport transport = Transport::kUdp;
  fabric::HashPolicy policy = fabric::HashPolicy::kFields;
};

// `seeds` by NodeId, of the switches' hashes. Cost: about 100 hashes for each NIC, and for each
// link that needs more paths as many as there are equally good paths past it.
Matrix plan_matrix(const topo::Graph& graph, const fabric::Routes& routes,
                   std::span<const std::uint32_t> seeds, const MatrixOptions& options = {});

// The proof: the paths over each link, and the links that probes cannot tell apart.
struct Coverage {
  std::vector<std::uint32_t> first;    // per directed link into `paths`, and the end
  std::vector<std::uint32_t> paths;    // numbers of Matrix::paths, ascending for each link
  std::vector<std::uint32_t> missing;  // directed links that no path covers
  std::vector<std::uint32_t> thin;     // those with fewer than three
  // Directed links that every path shares with another link: {link, the other}. If both break, the
  // second hides the first; if they share all paths, neither can be told from the other.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> hidden;
  // Links hidden by no single other link but by two together: of three faults one is overlooked.
  std::vector<std::uint32_t> hidden_by_two;

  std::span<const std::uint32_t> paths_of(std::uint32_t link) const {
    return std::span(paths).subspan(first[link], first[link + 1] - first[link]);
  }
};

Coverage cover(const topo::Graph& graph, const Matrix& matrix);

// "leaf0-spine1 from leaf0 to spine1".
std::string link_text(const topo::Graph& graph, std::uint32_t directed_link);

// "36 of 36 directed links, by 4 to 9 paths each", and a line for each shortfall.
std::string coverage_text(const topo::Graph& graph, const Coverage& coverage);
// A line for each pair that is always crossed together, and for each link hidden by two others.
std::string overlaps_text(const topo::Graph& graph, const Coverage& coverage);

}  // namespace regatta::probe
