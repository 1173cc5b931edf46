# The first process of the virtual machine, run by busybox. Its root is this machine's, read-only; it becomes an overlay of
# the unpacked packages and the machine's root, with a tmpfs on top, so that everything that is installed or built here
# is there too, and whatever the tests write disappears with the machine.
#
# $PACKAGES, $RUN and $BUSYBOX come from the kernel's command line: the packages' root, the directory of this run, and
# busybox.
set -e
b=$BUSYBOX
export PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
$b mount -t proc proc /proc
$b mount -t tmpfs tmpfs /mnt
$b mkdir /mnt/upper /mnt/work /mnt/packages /mnt/root
$b mount -t hostfs -o "$PACKAGES" packages /mnt/packages
$b insmod "$($b find /mnt/packages/usr/lib/uml /usr/lib/uml -name overlay.ko 2>/dev/null | $b head -n 1)"
$b mount -t overlay -o lowerdir=/mnt/packages:/,upperdir=/mnt/upper,workdir=/mnt/work root /mnt/root

cd /mnt/root
$b mkdir -p vm
$b mount -t proc proc proc
$b mount -t sysfs sys sys
$b mount -t devtmpfs dev dev
$b mkdir -p dev/shm dev/pts
$b mount -t devpts devpts dev/pts
for d in dev/shm run mnt; do $b mount -t tmpfs tmpfs $d; done
$b ln -sf /proc/self/fd dev/fd
$b mount -t hostfs -o "$RUN" run vm
$b mkdir run/machine
$b cp "$b" run/busybox
$b pivot_root . run/machine
exec $b chroot . /bin/bash /vm/guest.sh </dev/null >/vm/output 2>&1
