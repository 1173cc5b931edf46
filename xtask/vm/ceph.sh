# Setup of a virtual machine: a CephFS with one OSD, mounted twice by the kernel's client as /mnt/a and /mnt/b.
module ceph
d=/run/ceph
export CEPH_CONF=$d/ceph.conf
uuid() { cat /proc/sys/kernel/random/uuid; }
monitor='[v2:127.0.0.1:3300,v1:127.0.0.1:6789]'
mkdir -p $d/{mon,osd.0,mds}
id=$(uuid)
cat >$CEPH_CONF <<END
[global]
fsid = $id
mon host = $monitor
public addr = 127.0.0.1
ms bind ipv6 = false
auth cluster required = none
auth service required = none
auth client required = none
keyring = /dev/null
run dir = $d
admin socket =
log file = $d/\$name.log
crash dir = $d
osd pool default size = 1
osd pool default min size = 1
osd crush chooseleaf type = 0
mon allow pool size one = true
osd pool default pg autoscale mode = off
# There is one processor, and everything may be stopped for a while.
osd heartbeat grace = 600
osd op thread timeout = 600
osd op thread suicide timeout = 0
mds beacon grace = 600
[mon]
mon data = $d/mon
mon data avail crit = 1
paxos propose interval = 0.05
paxos min wait = 0.01
[osd]
osd data = $d/osd.\$id
osd objectstore = memstore
memstore device bytes = 1G
osd op num shards = 1
osd op num threads per shard = 1
[mds]
mds data = $d/mds
mds tick interval = 0.1
END
monmaptool --create --fsid "$id" --addv a "$monitor" $d/monitors
ceph-mon --mkfs -i a --monmap $d/monitors
ceph-mon -i a -f &
osd=$(uuid)
ceph osd new "$osd" 0
ceph-osd --mkfs -i 0 --osd-uuid "$osd"
ceph-osd -i 0 -f &
until ceph osd stat | grep -q '1 up'; do sleep 0.2; done
# The tool takes seconds to start.
printf 'osd pool create meta 1\nosd pool create data 8\nfs new files meta data\nfs set files session_timeout 600\n' | ceph
ceph-mds -i a -f &
until ceph mds stat | grep -q up:active; do sleep 0.2; done
for name in a b; do
    mkdir "/mnt/$name"
    # Without `noshare` both would have one page cache.
    mount -i -t ceph -o name=admin,noshare,ms_mode=legacy 127.0.0.1:6789:/ "/mnt/$name"
done
