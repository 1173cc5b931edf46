/*
 * Preloaded into user-mode Linux, which runs its processes with ptrace.
 *
 * 1. Version 6.1 saves the registers of a process in 2696 bytes. On processors with a larger state (AMX) the
 *    machine's kernel refuses to restore a part of it with EFAULT. The part is padded: a component whose bit in
 *    the header is clear is in its initial state.
 * 2. It takes a process that was stopped from outside (SIGSTOP, from a batch system for example) for a broken one and
 *    panics. Such a stop is undone as soon as user-mode Linux itself runs again.
 * 3. To the servers of its virtio devices it describes its memory in a message that always has the length for two
 *    regions, even if there is one. virtiofsd refuses that, so the message is shortened.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    STATE_MAX = 1 << 16,   /* the largest register state */
    HEADER_AT = 512,       /* of the XSAVE area: which components are present */
    COMPONENTS_OLD = 0x3ff, /* x87 to PKRU, which version 6.1 knows */
    PROCESSES_MAX = 1 << 22,
    SETOPTIONS_OLD = 21,   /* PTRACE_OLDSETOPTIONS */
};

/* By process, from the setting of its options, which follows its first stop, until it is killed: the request that
 * resumed it last. The length is the kernel's limit for process numbers; pages that are never touched take no memory. */
static unsigned short resumed_by[PROCESSES_MAX];

static unsigned short *entry(long process) {
    static unsigned short unknown;
    return process > 0 && process < PROCESSES_MAX ? &resumed_by[process] : &unknown;
}

static int resumes(long request) {
    return request == PTRACE_CONT || request == PTRACE_SYSCALL || request == PTRACE_SYSEMU ||
           request == PTRACE_SYSEMU_SINGLESTEP || request == PTRACE_SINGLESTEP;
}

static long restore_padded(long process, long set, struct iovec *part) {
    static _Alignas(64) unsigned char state[STATE_MAX];
    static size_t state_bytes;
    struct iovec all = {state, sizeof state};
    if (!state_bytes) {
        if (syscall(SYS_ptrace, PTRACE_GETREGSET, process, set, &all) != 0) return -1;
        state_bytes = all.iov_len;
    }
    if (part->iov_len >= state_bytes) return syscall(SYS_ptrace, PTRACE_SETREGSET, process, set, part);
    memset(state, 0, state_bytes);
    memcpy(state, part->iov_base, part->iov_len);
    unsigned long present;
    memcpy(&present, state + HEADER_AT, sizeof present);
    present &= COMPONENTS_OLD;
    memcpy(state + HEADER_AT, &present, sizeof present);
    all.iov_len = state_bytes;
    return syscall(SYS_ptrace, PTRACE_SETREGSET, process, set, &all);
}

long ptrace(enum __ptrace_request request, ...) {
    va_list arguments;
    va_start(arguments, request);
    long process = va_arg(arguments, long), address = va_arg(arguments, long), data = va_arg(arguments, long);
    va_end(arguments);
    if (request == PTRACE_SETREGSET && address == NT_X86_XSTATE)
        return restore_padded(process, address, (struct iovec *)data);
    if (request == PTRACE_PEEKTEXT || request == PTRACE_PEEKDATA || request == PTRACE_PEEKUSER) {
        /* The system call stores the word, the C function returns it. */
        long word = 0;
        long failed = syscall(SYS_ptrace, request, process, address, &word);
        if (failed == 0) errno = 0;
        return failed < 0 ? failed : word;
    }
    if (request == PTRACE_SETOPTIONS || (long)request == SETOPTIONS_OLD) *entry(process) = PTRACE_SYSCALL;
    if (request == PTRACE_KILL) *entry(process) = 0;
    if (resumes(request) && *entry(process)) *entry(process) = (unsigned short)request;
    return syscall(SYS_ptrace, (long)request, process, address, data);
}

/* Whether a process was stopped or continued by somebody else. */
static int comes_from_outside(pid_t process, int status) {
    return process > 0 && WIFSTOPPED(status) && *entry(process) != 0 &&
           (WSTOPSIG(status) == SIGSTOP || WSTOPSIG(status) == SIGCONT);
}

pid_t waitpid(pid_t wanted, int *status, int options) {
    for (;;) {
        int found = 0;
        pid_t process = (pid_t)syscall(SYS_wait4, wanted, &found, options, NULL);
        if (comes_from_outside(process, found)) {
            syscall(SYS_ptrace, (long)*entry(process), process, 0, 0);
            continue;
        }
        if (process > 0 && (WIFEXITED(found) || WIFSIGNALED(found))) *entry(process) = 0;
        if (status) *status = found;
        return process;
    }
}

/* vhost-user's message SET_MEM_TABLE. */
struct memory_table {
    uint32_t request, flags, payload_bytes;
    uint32_t regions, padding;
    struct {
        uint64_t guest_address, bytes, user_address, mapping_offset;
    } region[];
} __attribute__((packed));

enum { SET_MEM_TABLE = 5, MESSAGE_HEADER = 12 };

ssize_t sendmsg(int socket, const struct msghdr *message, int flags) {
    struct iovec *part = message->msg_iov;
    struct memory_table *table = message->msg_iovlen == 1 ? part->iov_base : NULL;
    /* Descriptors of the memory are sent along. */
    int has_table = table && message->msg_controllen && part->iov_len > sizeof *table &&
                    table->request == SET_MEM_TABLE && table->payload_bytes + MESSAGE_HEADER == part->iov_len;
    if (!has_table) return syscall(SYS_sendmsg, socket, message, flags);
    size_t whole = part->iov_len, used = sizeof *table + table->regions * sizeof table->region[0];
    table->payload_bytes = (uint32_t)used - MESSAGE_HEADER;
    part->iov_len = used;
    ssize_t sent = syscall(SYS_sendmsg, socket, message, flags);
    /* The kernel takes a shorter count for a failure. */
    return sent == (ssize_t)used ? (ssize_t)whole : sent;
}
