#!/bin/bash
# on NODE COMMAND...: runs a command on a node. Under the name on-rsh it is what launchers of MPIs use in place of ssh.
while [ "${1#-}" != "$1" ]; do shift; done
node=$1
shift
[ "${0##*/}" != on-rsh ] || set -- bash -c "$*"
exec nsenter -t "$(cat "/mnt/.$node")" --net --uts --ipc --mount --wdns="$PWD" -- "$@"
