# Sourced in a guest: two RDMA devices in software (soft-RoCE) at the two ends of a cable. Both ends lie in
# one network namespace, because soft-RoCE of these kernels serves the first one alone. Its packets take
# the cable all the same: it asks for a route through its own interface, and accept_local lets a packet in
# that comes from an address of this machine. TCP between the two goes over lo.
ip=/bin/ip
$ip link add rdma0 type veth peer name rdma1
echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter
for i in 0 1; do
  echo 1 >/proc/sys/net/ipv4/conf/rdma$i/accept_local
  echo 0 >/proc/sys/net/ipv4/conf/rdma$i/rp_filter
  $ip addr add 10.0.0.$((i + 1))/24 dev rdma$i
  $ip link set rdma$i mtu 9000 up
  rdma link add rxe$i type rxe netdev rdma$i
done
export REGATTA_TEST_RDMA=10.0.0.1,10.0.0.2
# The address becomes a GID a moment after the device.
for i in 0 1; do
  for attempt in 1 2 3 4 5 6 7 8 9 10; do
    grep -q "0a00:000$((i + 1))" /sys/class/infiniband/rxe$i/ports/1/gids/1 2>/dev/null && break
    sleep 0.1
  done
done
