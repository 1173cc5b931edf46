# Setup of a virtual machine: a directory served by Samba and mounted twice, as /mnt/a and /mnt/b. CACHE is set.
module cifs loop
exported_disk
mkdir -p /run/samba /etc/samba
cat >/etc/samba/smb.conf <<'END'
[global]
    state directory = /run/samba
    cache directory = /run/samba
    lock directory = /run/samba
    private dir = /run/samba
    pid directory = /run/samba
    ncalrpc dir = /run/samba/ncalrpc
    log file = /run/samba/log
    interfaces = lo
    bind interfaces only = yes
    smb ports = 445
    disable netbios = yes
    map to guest = Bad User
    guest account = root
[files]
    path = /export
    read only = no
    guest ok = yes
    force user = root
END
smbd --foreground --no-process-group &
listening 445
for name in a b; do
    mkdir "/mnt/$name"
    # One connection per mount, or both would have one page cache. Locks of the server would exclude accesses, too.
    mount -i -t cifs -o "ip=127.0.0.1,vers=3.1.1,username=guest,password=,nosharesock,nobrl,cache=$CACHE" \
        //127.0.0.1/files "/mnt/$name"
done
