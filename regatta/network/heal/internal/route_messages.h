// heal/internal/route_messages.h: rtnetlink messages about IPv4 routes, many to a block: encoding
// and decoding only.
// Source: rtnetlink(7), netlink(7).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <linux/rtnetlink.h>

namespace regatta::heal {

struct KernelHop {
  int interface = 0;
  std::uint32_t gateway = 0;  // 10.0.0.1 is 0x0a000001
  int weight = 1;

  friend bool operator==(const KernelHop&, const KernelHop&) = default;
};

// A route to one address.
struct KernelRoute {
  std::uint32_t destination = 0;
  std::vector<KernelHop> hops;
  std::uint8_t protocol = RTPROT_STATIC;  // which kind of program installed it

  friend bool operator==(const KernelRoute&, const KernelRoute&) = default;
};

// Appends a message that adds the route to a table or replaces that which is there. `acknowledge`:
// the kernel answers also when all is well.
void append_route(std::string& block, const KernelRoute& route, std::uint32_t sequence,
                  bool acknowledge, std::uint8_t table = RT_TABLE_MAIN);
// Removes the route to this address from the table. The kernel answers (ESRCH if there is none).
void append_route_removal(std::string& block, std::uint32_t destination, std::uint32_t sequence,
                          std::uint8_t table);
// A rule that makes packets of this type of service look into `table` first. The kernel answers
// (EEXIST if the rule exists).
void append_rule(std::string& block, std::uint8_t tos, std::uint8_t table, std::uint32_t sequence);
// Removes one such rule, whatever its priority. The kernel answers (ENOENT if there is none).
void append_rule_removal(std::string& block, std::uint8_t tos, std::uint8_t table,
                         std::uint32_t sequence);
// A request for all routes, links or addresses: RTM_GETROUTE, RTM_GETLINK, RTM_GETADDR.
void append_dump(std::string& block, std::uint16_t type, std::uint32_t sequence);

// Query for the outgoing interface of a packet that comes in by `enters`.
struct Question {
  int enters = 0;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint16_t from_port = 0;
  std::uint16_t to_port = 0;
  std::uint8_t protocol = 17;
  std::uint8_t tos = 0;
};
void append_question(std::string& block, const Question& question, std::uint32_t sequence);

// Whether an RTM_NEWROUTE or RTM_DELROUTE is about a single IPv4 address in the main table.
bool is_single_main_route(const nlmsghdr& message);
// Parses an RTM_NEWROUTE; nothing where is_single_main_route() is false, and for a route with a
// metric or a type of service, beside which others to the same address may stand. A route that
// delivers or discards has no hops.
std::optional<KernelRoute> parse_route(const nlmsghdr& message);
// RTA_OIF of an answer to a question; 0: none.
int parse_answer(const nlmsghdr& message);

struct KernelAddress {
  int interface = 0;
  std::uint32_t address = 0;
};
std::optional<KernelAddress> parse_address(const nlmsghdr& message);

struct KernelLink {
  int interface = 0;
  bool on = false;       // switched on
  bool carrier = false;  // and so is the other end
};
// Parses an RTM_NEWLINK or RTM_DELLINK.
KernelLink parse_link(const nlmsghdr& message);

}  // namespace regatta::heal
