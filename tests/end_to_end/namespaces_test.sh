#!/usr/bin/env bash
# Server, bad network and rig on three machines: network namespaces of their own, joined by virtual cables. The addresses
# are no loopback, so the key is needed; a cable is cut.
if [[ ${1:-} != inside ]]; then
  command -v ip >/dev/null || { echo "skipped: no \`ip\` here (iproute2)"; exit 77; }
  source "$(dirname "$0")/own_namespace.sh"
  if ! own_namespace --net; then
    echo "skipped: network namespaces are not permitted here: $reason"
    exit 77
  fi
  exec "${namespace[@]}" "$BASH" "$0" inside
fi
source "$(dirname "$0")/lib.sh"
trap 'stop_server; umount --recursive --lazy /run 2>/dev/null || :' EXIT
if ! { mount -t tmpfs tmpfs /run && ip netns add server && ip netns add proxy && ip netns add rig; } 2>err ||
  ! ip link add to_proxy netns server type veth peer name to_server netns proxy 2>err ||
  ! ip link add to_rig netns proxy type veth peer name to_proxy netns rig 2>err; then
  echo "skipped: no virtual cables here: $(cat err)"
  exit 77
fi
# cable NAMESPACE DEVICE ADDRESS
# `ip -n` changes mounts, which a chroot does not permit
in_namespace() { nsenter --net="/run/netns/$1" "${@:2}"; }
cable() {
  in_namespace "$1" ip address add "$3/24" dev "$2" && in_namespace "$1" ip link set "$2" up && in_namespace "$1" ip link set lo up
}
cable server to_proxy 10.1.0.1 && cable proxy to_server 10.1.0.2 || exit 1
cable proxy to_rig 10.2.0.1 && cable rig to_proxy 10.2.0.2 || exit 1

"$RIGSTEP" keygen bench.key 2>/dev/null || exit 1
sed "s#\.\./mechanisms#$SOURCE/config/mechanisms#; s/127.0.0.1/10.1.0.1/; s/^link {/link { key_file: \"bench.key\"/" \
  "$SOURCE/config/rigs/ci_loopback.textproto" >rig.textproto
nsenter --net=/run/netns/server "$RIGSTEP" serve rig.textproto --record far.mcap --json >serve.out 2>serve.err </dev/null &
server=$!
nsenter --net=/run/netns/proxy "$RIGSTEP" impair 10.1.0.1:47001 --listen-address 10.2.0.1 --listen-port 47002 --seed 2 --delay 2 \
  --jitter 1 --loss 0.01 --duplicate 0.01 >impair.json 2>impair.err </dev/null &
proxy=$!
for _ in $(seq 100); do
  grep -q listening serve.err && grep -q listening impair.err && break
  sleep 0.1
done

far_rig=(nsenter --net=/run/netns/rig "$RIGSTEP" rig --host 10.2.0.1 --port 47002 --key bench.key --json)
expect 0 "${far_rig[@]}" --duration 2 --drive drive=sine:2,1
cp out rig.json
assert_json rig.json 'd["states"] > 500 and d["lost"] > 0'
# the ways are as long as the proxy makes them, and both sides have one clock here
assert_json rig.json 'abs(d["clock"]["offset_us"]) <= d["clock"]["uncertainty_us"] and d["clock"]["uncertainty_us"] > 2000'
assert_json rig.json 'd["to_server_us"]["p50"] + d["to_rig_us"]["p50"] > 4000'
expect 5 nsenter --net=/run/netns/rig "$RIGSTEP" status 10.1.0.1:47001 --key bench.key # no way around the proxy
expect 0 nsenter --net=/run/netns/rig "$RIGSTEP" status 10.2.0.1:47002 --key bench.key --json
assert_json out 'd["state"] == "running" and d["authenticated"]'

# the cable is cut for longer than the time-out: the rig says so, the server drops it
"${far_rig[@]}" --duration 30 >cut.json 2>cut.err &
rig_process=$!
sleep 1
in_namespace rig ip link set to_proxy down
wait "$rig_process"
code=$?
[[ $code -eq 5 ]] || fail "the rig ended with $code after the cut: $(cat cut.json cut.err)"
assert_json cut.json 'd["end"] == "server silent"'
grep -q 'went silent and was dropped' serve.err || fail "the server did not notice the cut: $(cat serve.err)"
kill -TERM "$proxy" "$server"
wait "$proxy" "$server"
server=
expect 0 "$RIGSTEP" replay far.mcap

# an interface with two addresses: a server on all of them answers from the first, whichever a rig talks to; one that is
# named is the one that answers
in_namespace server ip address add 10.1.0.3/24 dev to_proxy || exit 1
answers_at() { timeout 2 nsenter --net=/run/netns/proxy "$RIGSTEP" status "$1:47001" --key bench.key >out 2>err </dev/null; }
for address in 0.0.0.0 10.1.0.3; do
  sed "s/10\.1\.0\.1/$address/; s/^recording.*//" rig.textproto >addresses.textproto
  nsenter --net=/run/netns/server "$RIGSTEP" serve addresses.textproto >serve.out 2>serve.err </dev/null &
  server=$!
  for _ in $(seq 100); do grep -q listening serve.err && break || sleep 0.1; done
  if [[ $address == 0.0.0.0 ]]; then
    answers_at 10.1.0.1 || fail "a server on all addresses does not answer at the first: $(cat err)"
    answers_at 10.1.0.3 && fail "a server on all addresses answers from the one that was asked: change README"
  else
    answers_at 10.1.0.3 || fail "a server does not answer at its own address: $(cat err)"
  fi
  end_server TERM
done
finish
