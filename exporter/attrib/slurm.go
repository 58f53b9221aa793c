package attrib

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"pitchpipe/exporter/hostfs"
)

const stepdName = "slurmstepd"

// A step of a job as its daemon's title names it.
type step struct {
	job  string
	name string // batch, extern, interactive, or a number
}

const stepBatch = "batch"

// bornBatch is the name in Found.Birth of the start of the batch step's daemon, for jobs
// without a cgroup.
const bornBatch = "slurmstepd"

// ParseTitle reads the command line of a step daemon, which Slurm writes as
// "slurmstepd: [<job>.<step>]". Components of heterogeneous jobs are
// "<job>+<component>.<step>"; they belong to the job.
func ParseTitle(cmdline []byte) (job, stepName string, ok bool) {
	text := string(bytes.TrimRight(cmdline, "\x00 \n"))
	text, ok = strings.CutPrefix(text, stepdName+": [")
	if !ok {
		return "", "", false
	}
	text, rest, ok := strings.Cut(text, "]")
	if !ok || strings.TrimSpace(rest) != "" {
		return "", "", false
	}
	job, stepName, ok = strings.Cut(text, ".")
	job, _, _ = strings.Cut(job, "+")
	if _, err := strconv.ParseUint(job, 10, 32); err != nil || !ok || stepName == "" || strings.ContainsAny(stepName, "/ \n") {
		return "", "", false
	}
	return job, stepName, true
}

// ParseRestarts reads what the environment of a Slurm job's process says: the job
// and how often it was requeued; counted is false where no count stands there,
// which in the batch step means never.
func ParseRestarts(data []byte) (job string, restarts int, counted bool) {
	env := hostfs.Env(data, "SLURM_JOB_ID", "SLURM_RESTART_COUNT")
	if n, err := strconv.ParseUint(env["SLURM_RESTART_COUNT"], 10, 20); err == nil {
		restarts, counted = int(n), true
	}
	return env["SLURM_JOB_ID"], restarts, counted
}

// identity reports who owns what the kernel says is uid's, so that tests need no root; nil =
// that user.
type identity func(path string, uid uint32) uint32

// say names the owner of path, which the kernel says is uid's.
func (i identity) say(path string, uid uint32) uint32 {
	if i == nil {
		return uid
	}
	return i(path, uid)
}

// of asks the kernel; links are followed.
func (i identity) of(path string) (uid uint32, ok bool) {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return 0, false
	}
	return i.say(path, st.Uid), true
}

// stepds recognises Slurm's step daemons among processes.
type stepds struct {
	root  hostfs.Root
	owner identity
}

// is reports whether the process is a step daemon, and of which step. A title is not
// enough: every user may start a setuid program under any name, and that process is
// root's. So it has to be root's by its real and saved ids, and to run a file
// called slurmstepd that is root's and not setuid. Reading which file it runs
// takes root or CAP_SYS_PTRACE; without, nothing is a step daemon.
func (d stepds) is(pid int) (step, bool) {
	if !d.runs(pid) { // first, since nearly none does
		return step{}, false
	}
	admin, ok := d.owner.of(d.root.Proc())
	if !ok {
		return step{}, false
	}
	if uid, ok := d.owner.of(d.root.Pid(pid)); !ok || uid != admin {
		return step{}, false
	}
	data, err := hostfs.Read(d.root.Pid(pid, "cmdline"))
	if err != nil {
		return step{}, false
	}
	job, name, ok := ParseTitle(data)
	if !ok || !d.bornBy(pid, admin) {
		return step{}, false
	}
	exe := d.root.Pid(pid, "exe")
	file, err := os.Stat(exe)
	if err != nil || file.Mode()&os.ModeSetuid != 0 {
		return step{}, false
	}
	if uid, ok := d.owner.of(exe); !ok || uid != admin {
		return step{}, false
	}
	return step{job: job, name: name}, true
}

// runs reports whether a process runs a file that is called as a step daemon is.
func (d stepds) runs(pid int) bool {
	target, err := os.Readlink(d.root.Pid(pid, "exe"))
	return err == nil && isDaemonFile(path.Base(strings.TrimSuffix(target, " (deleted)")))
}

// isDaemonFile recognises the file of a step daemon by its name. Debian's is slurmstepd-wlm.
func isDaemonFile(name string) bool {
	return name == stepdName || strings.HasPrefix(name, stepdName+"-")
}

// bornBy reports whether the real and the saved user of a process are uid. The
// effective one may be the job's user for a moment.
func (d stepds) bornBy(pid int, uid uint32) bool {
	data, err := hostfs.Read(d.root.Pid(pid, "status"))
	if err != nil {
		return false
	}
	want := strconv.FormatUint(uint64(uid), 10)
	ids, _ := hostfs.Value(data, "Uid:")
	f := strings.Fields(ids)
	return len(f) == 4 && f[0] == want && f[2] == want
}

// sluid turns a job's SLUID into the number that users and the scheduler's
// commands know, by the title of a step daemon in the job's cgroup. While it is
// not known, wait is true for as long as it may become so.
func (s *Scanner) sluid(name, dir string) (id string, wait bool) {
	if id, ok := s.sluids[name]; ok {
		return id, false
	}
	for _, pid := range processes(dir) {
		if st, ok := s.procs.stepds.is(pid); ok {
			s.sluids[name] = st.job
			return st.job, false
		}
	}
	s.waits[name]++
	return name, s.waits[name] < settleScans
}

// incarnation is one start of a Slurm job, which a requeued job has several of
// under one id.
type incarnation struct {
	birth   map[string]uint64
	attempt int
	looks   int
}

// An attempt that is unknown by then stays so: the job has no batch step on
// this node, or its environment may not be read.
const maxRestartLooks = 240

// restarts finds out which attempt of a Slurm job f is, from the environments of
// its processes, and remembers it for as long as its cgroups are the same.
func (s *Scanner) restarts(f *Found) {
	i := s.incarnations[f.Key]
	if i == nil || reborn(i.birth, f.Birth) {
		i = &incarnation{}
		s.incarnations[f.Key] = i
	}
	// What has gone of it is remembered for as long as anything is there: its daemons live
	// on for seconds when its cgroups have gone, which go one by one.
	for name, ino := range i.birth {
		if _, there := f.Birth[name]; there {
			continue
		}
		if f.Birth == nil {
			f.Birth = map[string]uint64{}
		}
		f.Birth[name] = ino
	}
	i.birth = f.Birth
	if i.attempt == 0 && i.looks < maxRestartLooks {
		i.looks++
		i.attempt = s.readRestarts(f)
	}
	f.Attempt = i.attempt
}

func (s *Scanner) readRestarts(f *Found) int {
	batch, others := f.batch, f.Pids
	for _, dir := range f.Dirs {
		batch = append(batch, processes(filepath.Join(dir, "step_"+stepBatch))...)
		others = append(others, processes(dir)...)
	}
	for n, pids := range [][]int{batch, others} {
		for _, pid := range pids {
			data, err := hostfs.Read(s.root.Pid(pid, "environ"))
			if err != nil || !bytes.HasSuffix(data, []byte{0}) {
				continue // a process that ends while it is read shows the beginning alone
			}
			job, restarts, counted := ParseRestarts(data)
			if job == f.Key.ID && (counted || n == 0) {
				return restarts + 1
			}
		}
	}
	return 0
}

// reborn reports whether a cgroup that was there is now another one of its name.
func reborn(was, is map[string]uint64) bool {
	for name, ino := range was {
		if now, ok := is[name]; ok && now != ino {
			return true
		}
	}
	return false
}
