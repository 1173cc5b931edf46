# Setup of a virtual machine: a directory served by diod and mounted twice, as /mnt/a and /mnt/b. CACHE is set.
module 9pnet_fd 9p loop
exported_disk
diod --foreground --no-auth --export /export --listen 127.0.0.1:5640 --logdest /run/diod.log &
listening 5640
for name in a b; do
    mkdir "/mnt/$name"
    mount -i -t 9p -o "trans=tcp,port=5640,version=9p2000.L,aname=/export,uname=root,access=any,cache=$CACHE" \
        127.0.0.1 "/mnt/$name"
done
