#include "bench/peers/ns3_ring.h"

#include <cstdlib>
#include <vector>

#include <ns3/core-module.h>
#include <ns3/internet-module.h>
#include <ns3/network-module.h>
#include <ns3/point-to-point-module.h>

namespace regatta::peers {
namespace {

// Sends a chunk for each step, once that of the step before has come and has been sent.
class Rank {
 public:
  Rank(const ns3::Ptr<ns3::Node>& node, ns3::Ipv4Address next, const Ns3RingOptions& one)
      : steps_(2 * (one.ranks - 1)),
        packet_(one.packet),
        time_((one.packet + one.headers) / one.rate),
        packets_(static_cast<unsigned long>(one.bytes) / one.ranks / one.packet) {
    const auto udp = ns3::UdpSocketFactory::GetTypeId();
    in_ = ns3::Socket::CreateSocket(node, udp);
    in_->Bind(ns3::InetSocketAddress(ns3::Ipv4Address::GetAny(), 4791));
    in_->SetRecvCallback(ns3::MakeCallback(&Rank::receive, this));
    out_ = ns3::Socket::CreateSocket(node, udp);
    out_->Bind();
    out_->Connect(ns3::InetSocketAddress(next, 4791));
  }

  void begin() { send(); }
  bool is_done() const { return received_ == steps_ * packets_; }

 private:
  void receive(ns3::Ptr<ns3::Socket> socket) {
    while (socket->Recv())
      ++received_;
    if (is_waiting_) send();
  }

  void send() {
    const unsigned long step = sent_ / packets_;
    is_waiting_ = step < steps_ && received_ < step * packets_;
    if (step == steps_ || is_waiting_) return;
    out_->Send(ns3::Create<ns3::Packet>(packet_));
    ++sent_;
    ns3::Simulator::Schedule(ns3::Seconds(time_), &Rank::send, this);
  }

  const unsigned long steps_;
  const unsigned packet_;
  const double time_;            // of a packet on the wire, seconds
  const unsigned long packets_;  // of a chunk
  ns3::Ptr<ns3::Socket> in_;
  ns3::Ptr<ns3::Socket> out_;
  unsigned long sent_ = 0;
  unsigned long received_ = 0;
  bool is_waiting_ = false;
};

// The servers, their leaves and the spines, with the routes that a ring needs.
class Fabric {
 public:
  explicit Fabric(const Ns3RingOptions& one) {
    const unsigned leaf_count = one.ranks / one.per_leaf;
    servers.Create(one.ranks);
    leaves.Create(leaf_count);
    spines.Create(one.per_leaf);
    for (ns3::NodeContainer* nodes : {&servers, &leaves, &spines})
      stack.Install(*nodes);
    link.SetDeviceAttribute("DataRate", ns3::DataRateValue(ns3::DataRate("400Gbps")));
    link.SetDeviceAttribute("Mtu", ns3::UintegerValue(9000));
    link.SetChannelAttribute("Delay", ns3::StringValue("1us"));
    next_net.SetBase("10.0.0.0", "255.255.255.252");
    for (unsigned rank = 0; rank < one.ranks; ++rank) {
      const auto ends = join(servers.Get(rank), leaves.Get(rank / one.per_leaf));
      address_of.push_back(ends.GetAddress(0));
      routes_of(servers.Get(rank))->SetDefaultRoute(ends.GetAddress(1), 1);
    }
    for (unsigned leaf = 0; leaf < leaf_count; ++leaf)
      for (unsigned spine = 0; spine < one.per_leaf; ++spine)
        add_cable(one, leaf, spine);
  }

  ns3::NodeContainer servers;
  ns3::NodeContainer leaves;
  ns3::NodeContainer spines;
  std::vector<ns3::Ipv4Address> address_of;  // per server

 private:
  static ns3::Ptr<ns3::Ipv4StaticRouting> routes_of(const ns3::Ptr<ns3::Node>& node) {
    return ns3::Ipv4StaticRoutingHelper().GetStaticRouting(node->GetObject<ns3::Ipv4>());
  }

  ns3::Ipv4InterfaceContainer join(const ns3::Ptr<ns3::Node>& a, const ns3::Ptr<ns3::Node>& b) {
    const auto ends = next_net.Assign(link.Install(a, b));
    next_net.NewNetwork();
    return ends;
  }

  // Servers are reached by the spine of their place among those of their leaf.
  void add_cable(const Ns3RingOptions& one, unsigned leaf, unsigned spine) {
    const auto ends = join(leaves.Get(leaf), spines.Get(spine));
    const auto up = routes_of(leaves.Get(leaf));
    const auto down = routes_of(spines.Get(spine));
    for (unsigned rank = 0; rank < one.ranks; ++rank) {
      if (rank / one.per_leaf == leaf)
        down->AddHostRouteTo(address_of[rank], ends.GetAddress(0), ends.Get(1).second);
      else if (rank % one.per_leaf == spine)
        up->AddHostRouteTo(address_of[rank], ends.GetAddress(1), ends.Get(0).second);
    }
  }

  ns3::InternetStackHelper stack;
  ns3::PointToPointHelper link;
  ns3::Ipv4AddressHelper next_net;
};

}  // namespace

double ns3_ring_all_reduce(const Ns3RingOptions& one) {
  if (one.is_in_picoseconds) ns3::Time::SetResolution(ns3::Time::PS);
  Fabric fabric(one);
  std::vector<Rank> ranks;
  ranks.reserve(one.ranks);
  for (unsigned rank = 0; rank < one.ranks; ++rank)
    ranks.emplace_back(fabric.servers.Get(rank), fabric.address_of[(rank + 1) % one.ranks], one);
  for (Rank& rank : ranks)
    ns3::Simulator::ScheduleNow(&Rank::begin, &rank);
  ns3::Simulator::Run();
  for (const Rank& rank : ranks)
    if (!rank.is_done()) std::exit(1);  // packets were lost
  return ns3::Simulator::Now().GetSeconds();
}

}  // namespace regatta::peers
