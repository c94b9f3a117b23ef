/* Hide from a program what its processor has and one of 2013 had not.

Preloaded with LD_PRELOAD, it has Linux stop each CPUID instruction, by which a program
learns what a processor can, and answers in its place: as an Intel Haswell would, without
AVX-512, AMX and bfloat16. An AMD keeps its name. All else runs at full speed.

Linux stops the instruction with SIGSEGV (ARCH_SET_CPUID in arch_prctl(2), processors
with cpuid_fault in /proc/cpuinfo), so the program's own handlers of that signal are
kept here and called for all other faults. The bits are those of Intel's manual, volume
2A, "CPUID".
*/
#define _GNU_SOURCE
#include <cpuid.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { SET_CPUID = 0x1012, STOPPED = 0, ALLOWED = 1 }; /* of arch_prctl */
enum { LAST_LEAF = 0xd, FEATURES = 7, STATES = 0xd };
enum {
    OLD_FEATURES = 1 << 0 | 1 << 3 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 9,
    /* FSGSBASE, BMI1, AVX2, SMEP, BMI2, ERMS: leaf 7, EBX */
    OLD_STATES = 7, /* x87, SSE, AVX: leaf 0xd, EAX */
    INTEL = 6, HASWELL = 0x306c3, /* the family, the name: leaf 1, EAX */
};

typedef int Action(int, const struct sigaction *, struct sigaction *);
typedef int Mask(int, const sigset_t *, sigset_t *);

static struct sigaction theirs; /* what the program wants to be done */

static void *next(const char *name) { return dlsym(RTLD_NEXT, name); }

/* Answer as the older processor would, from what this one answered. */
static void make_older(unsigned leaf, unsigned part, unsigned answer[4])
{
    if (leaf == 0) {
        answer[0] = answer[0] < LAST_LEAF ? answer[0] : LAST_LEAF;
    } else if (leaf == 1 && (answer[0] >> 8 & 0xf) == INTEL) {
        answer[0] = HASWELL;
    } else if (leaf == FEATURES) {
        unsigned kept = part == 0 ? answer[1] & OLD_FEATURES : 0;
        memset(answer, 0, 4 * sizeof *answer);
        answer[1] = kept;
    } else if (leaf == STATES && part == 0) {
        answer[0] &= OLD_STATES;
    } else if (leaf == STATES && part == 1) {
        answer[0] &= 1; /* XSAVEOPT */
    } else if ((leaf == STATES && part > 2) || (leaf > LAST_LEAF && leaf < 1u << 30)) {
        memset(answer, 0, 4 * sizeof *answer);
    }
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    const unsigned char *code = (const unsigned char *)registers[REG_RIP];
    if (info->si_code == SI_KERNEL && code[0] == 0x0f && code[1] == 0xa2) {
        unsigned leaf = registers[REG_RAX], part = registers[REG_RCX], answer[4];
        syscall(SYS_arch_prctl, SET_CPUID, ALLOWED);
        __cpuid_count(leaf, part, answer[0], answer[1], answer[2], answer[3]);
        syscall(SYS_arch_prctl, SET_CPUID, STOPPED);
        make_older(leaf, part, answer);
        registers[REG_RAX] = answer[0];
        registers[REG_RBX] = answer[1];
        registers[REG_RCX] = answer[2];
        registers[REG_RDX] = answer[3];
        registers[REG_RIP] += 2;
    } else if (theirs.sa_flags & SA_SIGINFO) {
        theirs.sa_sigaction(number, info, context);
    } else if (theirs.sa_handler == SIG_DFL || theirs.sa_handler == SIG_IGN) {
        ((Action *)next("sigaction"))(number, &theirs, NULL);
        raise(number); /* as soon as this function has returned */
    } else {
        theirs.sa_handler(number);
    }
}

int sigaction(int number, const struct sigaction *wanted, struct sigaction *before)
{
    if (number != SIGSEGV)
        return ((Action *)next("sigaction"))(number, wanted, before);
    struct sigaction known = theirs;
    if (wanted)
        theirs = *wanted;
    if (before)
        *before = known;
    return 0;
}

sighandler_t signal(int number, sighandler_t handler)
{
    if (number != SIGSEGV)
        return ((sighandler_t(*)(int, sighandler_t))next("signal"))(number, handler);
    sighandler_t before = theirs.sa_handler;
    memset(&theirs, 0, sizeof theirs);
    theirs.sa_handler = handler;
    return before;
}

/* A blocked SIGSEGV would end the program at its next CPUID. */
static int unblocked(const char *name, int how, const sigset_t *wanted, sigset_t *before)
{
    sigset_t set;
    if (wanted && how != SIG_UNBLOCK) {
        set = *wanted;
        sigdelset(&set, SIGSEGV);
        wanted = &set;
    }
    return ((Mask *)next(name))(how, wanted, before);
}

int pthread_sigmask(int how, const sigset_t *wanted, sigset_t *before)
{
    return unblocked("pthread_sigmask", how, wanted, before);
}

int sigprocmask(int how, const sigset_t *wanted, sigset_t *before)
{
    return unblocked("sigprocmask", how, wanted, before);
}

__attribute__((constructor)) static void hide(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    ((Action *)next("sigaction"))(SIGSEGV, &action, &theirs);
    if (syscall(SYS_arch_prctl, SET_CPUID, STOPPED)) {
        perror("this processor can't hide what it has");
        _exit(1);
    }
}
