#include "regatta/base/os/netlink.h"

#include <algorithm>
#include <limits>

#include <linux/if.h>
#include <linux/rtnetlink.h>
#include <netlink/netlink.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <netlink/route/link/veth.h>
#include <netlink/route/nexthop.h>
#include <netlink/route/qdisc.h>
#include <netlink/route/qdisc/tbf.h>
#include <netlink/route/route.h>
#include <netlink/route/tc.h>

namespace regatta::os {
namespace {

Error netlink_error(const std::string& object, int code) {
  Error error{Code::kUnavailable, object + ": " + ::nl_geterror(code)};
  switch (code < 0 ? -code : code) {
    case NLE_EXIST:
    case NLE_BUSY:
      error.code = Code::kConflict;
      break;
    case NLE_NODEV:
    case NLE_OBJ_NOTFOUND:
      error.code = Code::kNotFound;
      break;
    case NLE_PERM:
    case NLE_NOACCESS:
    case NLE_OPNOTSUPP:
      error.code = Code::kUnsupported;
      break;
    default:
      break;
  }
  return error;
}

template <auto kRelease>
struct Releaser {
  template <typename T>
  void operator()(T* object) const {
    kRelease(object);
  }
};

using SocketPtr = std::unique_ptr<nl_sock, Releaser<nl_socket_free>>;
using LinkPtr = std::unique_ptr<rtnl_link, Releaser<rtnl_link_put>>;
using QdiscPtr = std::unique_ptr<rtnl_qdisc, Releaser<rtnl_qdisc_put>>;
using RoutePtr = std::unique_ptr<rtnl_route, Releaser<rtnl_route_put>>;
using RtAddressPtr = std::unique_ptr<rtnl_addr, Releaser<rtnl_addr_put>>;
using AddressPtr = std::unique_ptr<nl_addr, Releaser<nl_addr_put>>;
using MessagePtr = std::unique_ptr<nl_msg, Releaser<nlmsg_free>>;
using CachePtr = std::unique_ptr<nl_cache, Releaser<nl_cache_free>>;

Interface to_interface(rtnl_link* link) {
  Interface interface;
  interface.name = ::rtnl_link_get_name(link);
  interface.index = ::rtnl_link_get_ifindex(link);
  const unsigned flags = ::rtnl_link_get_flags(link);
  interface.admin_up = (flags & IFF_UP) != 0;
  interface.carrier = interface.admin_up && (flags & IFF_LOWER_UP) != 0;
  const auto stat = [&](rtnl_link_stat_id_t id) {
    return static_cast<long long>(::rtnl_link_get_stat(link, id));
  };
  interface.sent = Bytes{stat(RTNL_LINK_TX_BYTES)};
  interface.received = Bytes{stat(RTNL_LINK_RX_BYTES)};
  interface.packets_sent = stat(RTNL_LINK_TX_PACKETS);
  interface.packets_dropped = stat(RTNL_LINK_TX_DROPPED) + stat(RTNL_LINK_RX_DROPPED);
  return interface;
}

Result<AddressPtr> parse_address(const std::string& text, int prefix_length) {
  nl_addr* address = nullptr;
  const int code = ::nl_addr_parse(text.c_str(), AF_INET, &address);
  if (code < 0) return netlink_error("address " + text, code);
  ::nl_addr_set_prefixlen(address, prefix_length);
  return AddressPtr(address);
}

Result<RoutePtr> make_route(const std::string& destination) {
  REGATTA_TRY(address, parse_address(destination, 32));
  RoutePtr route(::rtnl_route_alloc());
  ::rtnl_route_set_family(route.get(), AF_INET);
  ::rtnl_route_set_dst(route.get(), address.get());
  ::rtnl_route_set_table(route.get(), RT_TABLE_MAIN);
  ::rtnl_route_set_scope(route.get(), RT_SCOPE_UNIVERSE);
  ::rtnl_route_set_protocol(route.get(), RTPROT_STATIC);
  return route;
}

}  // namespace

struct Netlink::Impl {
  SocketPtr socket;

  Result<LinkPtr> find(const std::string& name) const {
    rtnl_link* link = nullptr;
    const int code = ::rtnl_link_get_kernel(socket.get(), 0, name.c_str(), &link);
    if (code < 0) return netlink_error("interface " + name, code);
    return LinkPtr(link);
  }
};

Netlink::Netlink(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Netlink::Netlink(Netlink&&) noexcept = default;
Netlink& Netlink::operator=(Netlink&&) noexcept = default;
Netlink::~Netlink() = default;

Result<Netlink> Netlink::open() {
  auto impl = std::make_unique<Impl>();
  impl->socket.reset(::nl_socket_alloc());
  if (!impl->socket) return Error{Code::kExhausted, "netlink socket: out of memory"};
  const int code = ::nl_connect(impl->socket.get(), NETLINK_ROUTE);
  if (code < 0) return netlink_error("netlink socket", code);
  return Netlink(std::move(impl));
}

Status Netlink::add_veth(const std::string& name, const std::string& peer_name,
                         const UniqueFd& peer_namespace, const VethIndices& indices) {
  const LinkPtr link(::rtnl_link_veth_alloc());
  if (!link) return Error{Code::kExhausted, "interface " + name + ": out of memory"};
  ::rtnl_link_set_name(link.get(), name.c_str());
  ::rtnl_link_set_ifindex(link.get(), indices.own);
  const LinkPtr peer(::rtnl_link_veth_get_peer(link.get()));
  ::rtnl_link_set_name(peer.get(), peer_name.c_str());
  ::rtnl_link_set_ifindex(peer.get(), indices.peer);
  ::rtnl_link_set_ns_fd(peer.get(), peer_namespace.get());
  const int code = ::rtnl_link_add(impl_->socket.get(), link.get(), NLM_F_CREATE | NLM_F_EXCL);
  if (code < 0) return netlink_error("interface " + name, code);
  return {};
}

Status Netlink::remove_link(const std::string& name) {
  REGATTA_TRY(link, impl_->find(name));
  const int code = ::rtnl_link_delete(impl_->socket.get(), link.get());
  if (code < 0) return netlink_error("interface " + name, code);
  return {};
}

Result<Interface> Netlink::interface(const std::string& name) {
  REGATTA_TRY(link, impl_->find(name));
  return to_interface(link.get());
}

Result<std::vector<Interface>> Netlink::interfaces() {
  nl_cache* raw = nullptr;
  const int code = ::rtnl_link_alloc_cache(impl_->socket.get(), AF_UNSPEC, &raw);
  if (code < 0) return netlink_error("interfaces", code);
  const CachePtr cache(raw);
  std::vector<Interface> found;
  for (nl_object* object = ::nl_cache_get_first(raw); object != nullptr;
       object = ::nl_cache_get_next(object)) {
    found.push_back(to_interface(reinterpret_cast<rtnl_link*>(object)));
  }
  return found;
}

Status Netlink::set_up(const std::string& name, bool up) {
  REGATTA_TRY(link, impl_->find(name));
  const LinkPtr change(::rtnl_link_alloc());
  if (up) {
    ::rtnl_link_set_flags(change.get(), IFF_UP);
  } else {
    ::rtnl_link_unset_flags(change.get(), IFF_UP);
  }
  const int code = ::rtnl_link_change(impl_->socket.get(), link.get(), change.get(), 0);
  if (code < 0) return netlink_error("interface " + name, code);
  return {};
}

Status Netlink::set_sizes(const std::string& name, int mtu, int gso_max_size) {
  REGATTA_TRY(link, impl_->find(name));
  const MessagePtr message(::nlmsg_alloc_simple(RTM_NEWLINK, 0));
  ifinfomsg head{};
  head.ifi_index = ::rtnl_link_get_ifindex(link.get());
  if (!message || ::nlmsg_append(message.get(), &head, sizeof head, NLMSG_ALIGNTO) < 0 ||
      ::nla_put_u32(message.get(), IFLA_MTU, static_cast<std::uint32_t>(mtu)) < 0) {
    return Error{Code::kExhausted, "interface " + name + ": out of memory"};
  }
  if (gso_max_size > 0) {
    ::nla_put_u32(message.get(), IFLA_GSO_MAX_SIZE, static_cast<std::uint32_t>(gso_max_size));
  }
  int code = ::nl_send_auto(impl_->socket.get(), message.get());
  if (code >= 0) code = ::nl_wait_for_ack(impl_->socket.get());
  if (code < 0) return netlink_error("interface " + name, code);
  return {};
}

Status Netlink::add_address(const std::string& name, const std::string& address,
                            int prefix_length) {
  REGATTA_TRY(link, impl_->find(name));
  REGATTA_TRY(parsed, parse_address(address, prefix_length));
  const RtAddressPtr entry(::rtnl_addr_alloc());
  ::rtnl_addr_set_ifindex(entry.get(), ::rtnl_link_get_ifindex(link.get()));
  ::rtnl_addr_set_local(entry.get(), parsed.get());
  const int code = ::rtnl_addr_add(impl_->socket.get(), entry.get(), 0);
  if (code < 0) return netlink_error("address " + address + " of " + name, code);
  return {};
}

Status Netlink::set_shape(const std::string& name, const EgressShape& shape) {
  REGATTA_TRY(link, impl_->find(name));
  const QdiscPtr qdisc(::rtnl_qdisc_alloc());
  rtnl_tc* tc = TC_CAST(qdisc.get());
  ::rtnl_tc_set_link(tc, link.get());
  ::rtnl_tc_set_parent(tc, TC_H_ROOT);
  if (shape.rate.value > static_cast<double>(std::numeric_limits<int>::max())) {
    const int code = ::rtnl_qdisc_delete(impl_->socket.get(), qdisc.get());
    if (code < 0 && code != -NLE_OBJ_NOTFOUND) return netlink_error("shape of " + name, code);
    return {};
  }
  ::rtnl_tc_set_handle(tc, TC_HANDLE(1, 0));
  ::rtnl_tc_set_kind(tc, "tbf");
  ::rtnl_qdisc_tbf_set_rate(qdisc.get(), static_cast<int>(std::max(1.0, shape.rate.value)),
                            static_cast<int>(shape.burst.value), 0);
  ::rtnl_qdisc_tbf_set_limit(qdisc.get(), static_cast<int>(shape.queue.value));
  const int code = ::rtnl_qdisc_add(impl_->socket.get(), qdisc.get(), NLM_F_CREATE | NLM_F_REPLACE);
  if (code < 0) return netlink_error("shape of " + name, code);
  return {};
}

Status Netlink::set_route(const std::string& destination, const std::vector<NextHop>& hops) {
  REGATTA_TRY(route, make_route(destination));
  for (const NextHop& hop : hops) {
    REGATTA_TRY(gateway, parse_address(hop.gateway, 32));
    rtnl_nexthop* next = ::rtnl_route_nh_alloc();
    ::rtnl_route_nh_set_ifindex(next, hop.interface_index);
    ::rtnl_route_nh_set_gateway(next, gateway.get());
    ::rtnl_route_add_nexthop(route.get(), next);  // the route owns it from here
  }
  const int code = ::rtnl_route_add(impl_->socket.get(), route.get(), NLM_F_CREATE | NLM_F_REPLACE);
  if (code < 0) return netlink_error("route to " + destination, code);
  return {};
}

Status Netlink::remove_route(const std::string& destination) {
  REGATTA_TRY(route, make_route(destination));
  const int code = ::rtnl_route_delete(impl_->socket.get(), route.get(), 0);
  if (code < 0 && code != -NLE_OBJ_NOTFOUND) return netlink_error("route to " + destination, code);
  return {};
}

}  // namespace regatta::os
