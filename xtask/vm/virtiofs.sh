# Setup of a virtual machine: two devices that share one directory of the host, mounted as /mnt/a and /mnt/b.
module virtiofs
for name in a b; do
    mkdir "/mnt/$name"
    mount -i -t virtiofs "$name" "/mnt/$name"
done
