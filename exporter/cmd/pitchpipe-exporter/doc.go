// Command pitchpipe-exporter samples the jobs of a node and serves jobs, samples,
// progress marks and metrics. It runs without root with fewer sources, and says
// which ones are missing and why; pitchpipe-exporter doctor says it to people, with
// the command that mends each.
//
// --perf.events says which perf events are counted besides the software events. Those that
// the node lacks are left out, and each job's schema names those that are counted.
//
// Further sources need the following, all of it opt-in: CAP_PERFMON for perf (CAP_SYS_ADMIN
// before Linux 5.8, and on kernels of Debian and Ubuntu while kernel.perf_event_paranoid is
// above 2); CAP_SYS_PTRACE, and CAP_DAC_READ_SEARCH since such files are their owners'
// alone, for the environments, IO and programs of others' processes, which identify Slurm
// jobs without cgroups; read access to energy_uj for RAPL. --perf.leaf moves schedulers'
// jobs on hosts with v1 cgroups, in the tree that perf looks in (see perf.Cgroups), and
// needs root. --attrib.environ=any lets every user name any job in his processes'
// environments. That is useful only on a node without cgroups whose users trust each other.
//
// Who may read besides root: each user their own jobs; the accounts of --api.readers, on the
// socket, all; and the certificates of --api.clients, on --api.listen-address, all (see
// exporter/server/REMOTE.md).
//
// In a container: mount the host's root, say at /host, read-only, give
// --path.rootfs=/host, and share the host's process namespace, without which the
// kernel cannot tell the exporter who reports.
package main
