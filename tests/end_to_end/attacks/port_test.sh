#!/usr/bin/env bash
# Another user of the machine cannot share the server's port, with whatever options he binds: neither at its address nor
# at all addresses, neither before nor while a rig is connected.
source "$(dirname "$0")/../lib.sh"
[[ $(id -u) -eq 0 ]] || { echo "skipped: only root may become another user"; exit 77; }
sed "s#\.\./mechanisms#$SOURCE/config/mechanisms#; s/^recording.*//" "$SOURCE/config/rigs/ci_loopback.textproto" >rig.textproto
cat >take.py <<'END'
import os, socket, sys
os.setgid(65534)
os.setuid(65534)
port, got = int(sys.argv[1]), []
for address in ("127.0.0.1", "0.0.0.0"):
    for options in ((), (socket.SO_REUSEADDR,), (socket.SO_REUSEPORT,), (socket.SO_REUSEADDR, socket.SO_REUSEPORT)):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for option in options:
            s.setsockopt(socket.SOL_SOCKET, option, 1)
        try:
            s.bind((address, port))
            got.append((address, options))
        except OSError:
            pass
sys.exit(f"another user has the port, too: {got}" if got else 0)
END
serve rig.textproto || exit 1
expect 0 "$python" take.py "$port"
"$RIGSTEP" rig rig.textproto --port "$port" --duration 2 >/dev/null 2>&1 &
rig=$!
sleep 1
expect 0 "$python" take.py "$port"
wait "$rig" || fail "the rig ended with $?"
end_server TERM
[[ $code -eq 0 ]] || fail "serve ended with $code: $(cat serve.err)"
finish
