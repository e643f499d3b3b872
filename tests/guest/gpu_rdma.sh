# Run in a guest after rdma.sh: programs on a stand-in GPU whose server has the address of the second
# soft-RoCE device, while they use the first. FOLDER (of the libraries), DRIVER, TESTS and BENCH say what and where.
set -f
hostname guest
server=10.0.0.2:7000
pool="regatta gpu pool --servers $server --token-file /tmp/token --plain"
slice="--memory 200MiB --compute 90 --rdma-address 10.0.0.1"
tests="standin_cuda_test --gtest_brief=1 --gtest_color=no --gtest_filter=$TESTS"
failed=0

# expect WHAT COMMAND...: what it says stays in /tmp/said.
expect() {
  what=$1
  shift
  if "$@" >/tmp/said 2>&1; then echo "ok: $what"; else
    echo "FAILED: $what"
    tail -15 /tmp/said
    failed=1
  fi
}
wait_for() {
  for attempt in $(seq 200); do
    "$@" >/dev/null 2>&1 && return 0
    sleep 0.1
  done
  return 1
}
said() { grep -q "$1" /tmp/said-copy; }
pairs() { rdma resource show qp | grep -c "type RC"; }
has_no_pairs() { [ "$(pairs)" = 0 ]; }
has_pairs() { [ "$(pairs)" -ge 2 ]; }
has_no_tenant() { ! regatta gpu ps --socket /tmp/daemon --json | grep -q '"name"'; }
has_ended() { [ ! -e /proc/$1 ] || grep -q "State:.Z" /proc/$1/status; }
packets() { cat /sys/class/net/rdma0/statistics/tx_packets; }

for name in libregatta_gpu.so libregatta_gpu_remote.so; do ln -s $FOLDER/$name /bin/$name; done
export REGATTA_CUDA_LIBRARY=/bin/libregatta_gpu_remote.so
(umask 077; echo "a token of the tests" >/tmp/token)
grep -q ^nobody: /etc/passwd 2>/dev/null || echo "nobody:x:65534:65534::/:/bin/false" >>/etc/passwd
regatta-standin-device --socket /tmp/device --memory 256MiB >/tmp/log-device 2>&1 &
regatta gpu daemon --state /tmp/state --socket /tmp/daemon --gpu 256MiB >/tmp/log-daemon 2>&1 &
wait_for test -e /tmp/device
chmod 666 /tmp/device $(find /dev/infiniband -type c)  # host processes are another user's
wait_for regatta gpu policy --socket /tmp/daemon
start_server() {
  REGATTA_STANDIN=/tmp/device regatta gpu serve --listen $server --token-file /tmp/token --socket /tmp/daemon \
    --driver $DRIVER --rdma-address 10.0.0.2 --plain >>/tmp/log-serve 2>&1 &
  serve=$!
  wait_for $pool ls
}
start_server
expect "the pool shows that the server has RDMA" sh -c "$pool ls --json | grep '\"rdma\": true'"

before=$(packets)
expect "copies, launches and streams go over RDMA" $pool run $slice --transport rdma --verbose -- $tests
cp /tmp/said /tmp/said-copy
grep "PASSED" /tmp/said-copy
expect "and the program says so" said "^regatta: 10.0.0.2:7000: RDMA by rxe0 port 1"
expect "nothing is left of it" wait_for has_no_pairs
expect "without a choice it is RDMA" $pool run $slice --verbose -- remote_bench $BENCH
cp /tmp/said /tmp/said-copy
expect "and the program says so" said ": RDMA by rxe0 port 1"
sed 's/driver:/RDMA:/' /tmp/said-copy
echo "packets on the cable: $(($(packets) - before))"
expect "the bytes took the cable" test $(($(packets) - before)) -gt 4000
expect "it is TCP where that is asked for" $pool run $slice --transport tcp --verbose -- remote_bench $BENCH
cp /tmp/said /tmp/said-copy
expect "and the program says so" said "^regatta: 10.0.0.2:7000: TCP$"
sed 's/driver:/TCP: /' /tmp/said-copy
$pool run --memory 2MiB --compute 10 --transport rdma --rdma-address 10.0.0.7 -- true >/tmp/said 2>&1
status=$?
expect "an address without a device is refused in one sentence" test $status-$(wc -l </tmp/said) = 2-1

$pool run $slice --transport rdma -- $tests --gtest_repeat=-1 >/tmp/said-killed 2>&1 &
program=$!
expect "a program has its queue pairs" wait_for has_pairs
sleep 1
kill -9 $program
expect "nothing is left of a killed program" wait_for has_no_pairs
expect "nor is its tenant" wait_for has_no_tenant

# WHAT happened is heard of within ten seconds.
hears_of() {
  began=$(date +%s)
  expect "a program hears of $1" wait_for has_ended $program
  took=$(($(date +%s) - began))
  expect "within ten seconds: $took" test $took -le 10
  expect "in words" said "the GPU server is lost"
  expect "nothing is left of it" wait_for has_no_pairs
  expect "nor is its tenant" wait_for has_no_tenant
}
start_program() {
  $pool run $slice --transport rdma -- $tests --gtest_repeat=-1 --gtest_break_on_failure >/tmp/said-copy 2>&1 &
  program=$!
  wait_for has_pairs
  sleep 1
}
start_program
kill -9 $serve
hears_of "a killed server"
start_server
start_program
ip link set rdma0 down
hears_of "a cable that carries nothing"
expect "the pool shows that the server has no RDMA then" sh -c "$pool ls --json | grep '\"rdma\": false'"
expect "programs go on over TCP" $pool run $slice --verbose -- remote_bench 1 10
cp /tmp/said /tmp/said-copy
expect "and say so" said ": TCP: no active RoCEv2 port"
[ $failed = 0 ] || tail -n 5 /tmp/log-device /tmp/log-daemon /tmp/log-serve
exit $failed
