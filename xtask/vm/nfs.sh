# Setup of a virtual machine: an NFS server and nodes that mount it. VERSION, EXPORT, NODES and MOUNT_OPTIONS are set.
#
# A node is a network, host name, IPC and mount namespace. The kernel keeps NFS clients per network namespace, so each
# node is a client with its own identity at the server and its own page cache. `on NODE COMMAND` runs a command there;
# every node sees the mount as /nfs, and all of them are /mnt/NODE.
server() {
    case $EXPORT in
    tmpfs) mount -t tmpfs tmpfs /export ;;
    *)
        truncate -s 2G /run/disk
        "mkfs.$EXPORT" -q /run/disk
        mount -o loop /run/disk /export
        ;;
    esac
    mount -t nfsd nfsd /proc/fs/nfsd
    mount -t rpc_pipefs pipefs /var/lib/nfs/rpc_pipefs
    # The shortest times after a restart in which locks can only be reclaimed.
    echo 10 >/proc/fs/nfsd/nfsv4leasetime
    echo 10 >/proc/fs/nfsd/nfsv4gracetime
    echo 1 >/proc/sys/fs/nfs/nlm_grace_period
    rpcbind -w
    rpc.statd --no-notify
    rpc.mountd
    exportfs -i -o rw,no_root_squash,no_subtree_check,insecure,fsid=0 '*:/export'
    # Otherwise the lock manager of every node would register there, in place of the server's.
    rm -f /run/rpcbind.sock
    rpc.nfsd 8
    echo Y >/proc/fs/nfsd/v4_end_grace
}

# node NAME NUMBER
node() {
    unshare --net --uts --ipc --mount --propagation slave sleep infinity &
    local pid=$! address=10.99.0.$2
    echo "$pid" >"/mnt/.$1"
    until [ "$(readlink /proc/$pid/ns/mnt)" != "$(readlink /proc/self/ns/mnt)" ]; do sleep 0.05; done
    ip link add "to-$1" type veth peer name eth0 netns "$pid"
    ip link set "to-$1" up master bridge
    echo "$address $1" >>/etc/hosts
    mkdir "/mnt/$1"
    on "$1" bash -eu -c "
        hostname $1
        ip link set lo up
        ip addr add $address/24 dev eth0
        ip link set eth0 up
        mount -t tmpfs tmpfs /run
        mkdir /run/rpcbind
        mount -t tmpfs tmpfs /dev/shm
        # Shows the devices of this node.
        mount -t sysfs sys /sys
        if [ $VERSION = 3 ]; then rpcbind -w; rpc.statd --no-notify; fi"
    # In the machine's mount namespace, so that the other nodes see it too.
    nsenter -t "$pid" --net --uts mount -t nfs -o "vers=$VERSION,hard$MOUNT_OPTIONS" "10.99.0.1:$path" "/mnt/$1"
    on "$1" mount --bind "/mnt/$1" /nfs
}

module nfsd nfs nfsv3 nfsv4 lockd veth bridge loop
mount --make-rshared /
mkdir -p /export /nfs /run/rpcbind /var/lib/nfs/{sm,sm.bak,v4recovery,rpc_pipefs}
touch /etc/exports /var/lib/nfs/{etab,rmtab}
for user in _rpc statd; do
    getent passwd $user >/dev/null || echo "$user:x:$((500 + ${#user})):65534::/run:/usr/sbin/nologin" >>/etc/passwd
done
printf '127.0.0.1 localhost\n10.99.0.1 machine\n' >/etc/hosts
install -m 755 /vm/on.sh /usr/local/bin/on
ln -s on /usr/local/bin/on-rsh
ip link add bridge type bridge
ip addr add 10.99.0.1/24 dev bridge
ip link set bridge up
server
# The export with fsid=0 is the root of NFS v4.
[ "$VERSION" = 3 ] && path=/export || path=/
number=2
for name in $NODES; do
    node "$name" $number
    number=$((number + 1))
done

export HYDRA_LAUNCHER=rsh HYDRA_LAUNCHER_EXEC=on-rsh NODES
export OMPI_MCA_plm_rsh_agent=on-rsh
export OMPI_MCA_btl_tcp_if_include=10.99.0.0/24 OMPI_MCA_oob_tcp_if_include=10.99.0.0/24
# UCX would take the processes of all nodes for processes of one machine.
export UCX_TLS=tcp,self UCX_NET_DEVICES=eth0
