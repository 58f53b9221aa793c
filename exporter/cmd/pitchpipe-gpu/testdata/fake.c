/* A management library as NVIDIA's interface describes it, for two GPUs that do as the
 * test wants: what is left out, refused or split is chosen when it is compiled. */
#include <string.h>

typedef struct { unsigned gpu, memory; } utilization;
typedef struct { unsigned long long total, free, used; } memory;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } memory2;
typedef struct {
	unsigned pid;
	unsigned long long used;
	unsigned gpuInstance, computeInstance;
} process;
typedef struct {
	unsigned multiprocessors, copy, decoder, encoder, jpeg, ofa, slices, computeSlices;
	unsigned long long memoryMiB;
} attributes;

static char handles[8];
static int looks;
#define INDEX(d) ((int)((char *)(d) - handles))

int nvmlInit_v2(void)
{
#ifdef DENIED
	return 4;
#else
	return 0;
#endif
}
int nvmlShutdown(void) { return 0; }
int nvmlSystemGetDriverVersion(char *s, unsigned n) { strncpy(s, "555.42", n); return 0; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 2; looks++; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d)
{
#ifdef LOST
	if (LOST & 1 << i)
		return 15;
#endif
	*d = &handles[i];
	return i < 2 ? 0 : 6;
}
int nvmlDeviceGetUUID(void *d, char *s, unsigned n)
{
	const char *names[] = { "GPU-aaaa", "GPU-bbbb", "MIG-cccc", "MIG-dddd" };
	strncpy(s, names[INDEX(d)], n);
	return 0;
}
int nvmlDeviceGetName(void *d, char *s, unsigned n) { strncpy(s, "NVIDIA Test", n); return 0; }
int nvmlDeviceGetPowerUsage(void *d, unsigned *mw) { *mw = 100500 + INDEX(d) * 1000; return 0; }
int nvmlDeviceGetEnforcedPowerLimit(void *d, unsigned *mw) { *mw = 300000; return 0; }
#ifndef OLD
int nvmlDeviceGetTotalEnergyConsumption(void *d, unsigned long long *mj)
{
	if (INDEX(d) == 1)
		return 3;
	*mj = 5000000000000ULL + 250ULL * looks;
	return 0;
}
#endif
int nvmlDeviceGetUtilizationRates(void *d, utilization *u) { u->gpu = 35; u->memory = 10; return 0; }
int nvmlDeviceGetMemoryInfo(void *d, memory *m)
{
	m->total = 80ULL << 30;
	m->free = 69ULL << 30;
	m->used = 11ULL << 30;
	return 0;
}
#ifndef OLD
int nvmlDeviceGetMemoryInfo_v2(void *d, memory2 *m)
{
	if (m->version != (sizeof(memory2) | 2 << 24))
		return 25;
	m->total = 80ULL << 30;
	m->reserved = 1ULL << 30;
	m->free = 69ULL << 30;
	m->used = 10ULL << 30;
	return 0;
}
#endif
int nvmlDeviceGetComputeRunningProcesses_v3(void *d, unsigned *n, process *list)
{
	unsigned have = INDEX(d) == 0 ? 100 : INDEX(d) == 1 ? 0 : INDEX(d) - 1;
	unsigned room = *n, i;

	*n = have;
	if (have > room)
		return 7;
	for (i = 0; i < have; i++) {
		list[i].pid = 1000 + 100 * INDEX(d) + i;
		list[i].used = i == 0 ? ~0ULL : (unsigned long long)i << 20;
	}
	return 0;
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(void *d, unsigned *n, process *list)
{
	if (INDEX(d) != 0) {
		*n = 0;
		return 0;
	}
	*n = 1;
	list[0].pid = 1001; /* computes too */
	list[0].used = 5;
	return 0;
}
#ifdef MIG
int nvmlDeviceGetMigMode(void *d, unsigned *now, unsigned *next) { *now = *next = INDEX(d) == 0; return 0; }
int nvmlDeviceGetMaxMigDeviceCount(void *d, unsigned *n) { *n = 7; return 0; }
int nvmlDeviceGetMigDeviceHandleByIndex(void *d, unsigned i, void **m)
{
	if (i != 1 && i != 4)
		return 6;
	*m = &handles[i == 1 ? 2 : 3];
	return 0;
}
int nvmlDeviceGetGpuInstanceId(void *d, unsigned *id) { *id = 5 + INDEX(d); return 0; }
int nvmlDeviceGetComputeInstanceId(void *d, unsigned *id) { *id = 0; return 0; }
int nvmlDeviceGetAttributes_v2(void *d, attributes *a)
{
	memset(a, 0, sizeof *a);
	a->multiprocessors = INDEX(d) == 2 ? 16 : 60;
	a->memoryMiB = INDEX(d) == 2 ? 9856 : 40192;
	return 0;
}
#endif
