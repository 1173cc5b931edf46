# Runs in the virtual machine: sets up file systems by /vm/setup.sh, then runs the tests.
set -eu
exec 3>&1
log=/run/setup.log
finish() {
    code=$?
    trap - EXIT
    [ $code = 0 ] || { echo "guest: failed with $code"; tail -5 $log; dmesg | tail -5; } >&3 || true
    # Closing the file brings it to the machine.
    exec >/dev/null 2>&1 3>&1
    echo $code >/vm/status
    sync
    /run/busybox poweroff -f
}
trap finish EXIT
. /vm/settings

module() { for m in "$@"; do /run/busybox modprobe "$m"; done; }

# A new ext4 at /export, for a server.
exported_disk() {
    mkdir /export
    truncate -s 2G /run/disk
    mkfs.ext4 -q /run/disk
    mount -o loop /run/disk /export
}

# listening PORT: waits for a server.
listening() {
    for _ in {1..300}; do
        ! (: <"/dev/tcp/127.0.0.1/$1") || return 0
        sleep 0.1
    done
    echo "nobody listens to port $1"
    return 1
}

{
    hostname machine
    ip link set lo up
    echo '127.0.0.1 localhost machine' >/etc/hosts
    # For modules that the kernel loads itself: this machine need not have modprobe.
    ln -s busybox /run/modprobe
    echo /run/modprobe >/proc/sys/kernel/modprobe
    ln -sf /proc/self/mounts /etc/mtab
    . /vm/setup.sh
} >$log 2>&1

export PATH OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
bash -eu /vm/command.sh
