package attrib

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"pitchpipe/exporter/hostfs"
)

const (
	stepdName = "slurmstepd"
	stepBatch = "batch"
	// bornBatch is the name in Found.Birth of the start of the batch step's daemon, for jobs
	// without a cgroup.
	bornBatch = stepdName
)

// ParseTitle reads the command line of a step daemon, which Slurm writes as
// "slurmstepd: [<job>.<step>]"; the step is batch, extern, interactive, or a number. Components
// of heterogeneous jobs are
// "<job>+<component>.<step>"; they belong to the job.
func ParseTitle(cmdline []byte) (job, stepName string, ok bool) {
	m := regexp.MustCompile(`^slurmstepd: \[(\d{1,10})(?:\+[^.\]]*)?\.([^/ \n\]]+)\][\x00 \n]*$`).FindSubmatch(cmdline)
	if m == nil {
		return "", "", false
	}
	_, err := strconv.ParseUint(string(m[1]), 10, 32)
	return string(m[1]), string(m[2]), err == nil
}

// ownerOf asks the kernel who owns a file; it follows links.
func (s *Scanner) ownerOf(path string) (uid uint32, ok bool) {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return 0, false
	}
	return s.owner(path, st.Uid), true
}

// stepd reports whether the process is a step daemon of Slurm, and for which step. A title is
// not enough: every user may start a setuid program under any name, and that process is
// root's. So it must be root's by its real and saved ids, and must run a file called slurmstepd
// that is root's and not setuid. To see which file it runs takes root or CAP_SYS_PTRACE;
// without, nothing is a step daemon.
func (s *Scanner) stepd(pid int) (job, step string, ok bool) {
	exe := s.root.Pid(pid, "exe")
	if !s.runsStepd(pid) || !s.admins(s.root.Pid(pid)) { // the former first, since nearly none does
		return "", "", false
	}
	cmdline, _ := hostfs.Read(s.root.Pid(pid, "cmdline")) // unreadable: no title
	job, step, ok = ParseTitle(cmdline)
	file, err := os.Stat(exe)
	return job, step, ok && s.bornByAdmin(pid) && err == nil && file.Mode()&os.ModeSetuid == 0 && s.admins(exe)
}

// runsStepd reports whether a process runs a file named as a step daemon. Debian's is
// slurmstepd-wlm.
func (s *Scanner) runsStepd(pid int) bool {
	target, err := os.Readlink(s.root.Pid(pid, "exe"))
	name := path.Base(strings.TrimSuffix(target, " (deleted)"))
	return err == nil && (name == stepdName || strings.HasPrefix(name, stepdName+"-"))
}

// admins reports whether the administrator, who owns /proc, owns a file.
func (s *Scanner) admins(path string) bool {
	admin, ok := s.ownerOf(s.root.Proc())
	uid, known := s.ownerOf(path)
	return ok && known && uid == admin
}

// bornByAdmin reports whether the real and the saved user of a process are the administrator.
// The effective one may be the job's user for a moment.
func (s *Scanner) bornByAdmin(pid int) bool {
	data, err := hostfs.Read(s.root.Pid(pid, "status"))
	admin, ok := s.ownerOf(s.root.Proc())
	want := strconv.FormatUint(uint64(admin), 10)
	f := strings.Fields(hostfs.Value(data, "Uid"))
	return err == nil && ok && len(f) == 4 && f[0] == want && f[2] == want
}

// executor reports whether a process is the one of Nomad's that starts a task. Under v1 it
// goes into the task's cgroups, starts the task there and leaves them again: what it
// took is not the task's, and it would never leave a perf cgroup. It is the
// administrator's and "nomad executor" by its command line.
func (s *Scanner) executor(pid int) bool {
	if !s.admins(s.root.Pid(pid)) {
		return false
	}
	data, err := hostfs.Read(s.root.Pid(pid, "cmdline"))
	words := bytes.SplitN(data, []byte{0}, 3)
	return err == nil && len(words) == 3 && string(words[1]) == "executor" && (bytes.HasSuffix(words[0], []byte("/nomad")) || string(words[0]) == "nomad")
}

// incarnation is one start of a Slurm job. A requeued job has several under one id.
type incarnation struct {
	birth   map[string]uint64
	attempt int
	looks   int
}

// An attempt that is unknown after this many looks stays so: the job has no step on
// this node, or its environment may not be read.
const maxRestartLooks = 240

// restarts finds out which attempt of a Slurm job f is, from the environments of
// its processes, and remembers it for as long as its cgroups are the same.
func (s *Scanner) restarts(f *Found) {
	i := s.incarnations[f.Key]
	if i == nil || f.Reborn(Found{Birth: i.birth}) {
		i = &incarnation{}
		s.incarnations[f.Key] = i
	}
	// Keep what has gone for as long as anything is there: its daemons outlive its cgroups by
	// seconds, and those go one by one.
	for name, ino := range i.birth {
		if _, there := f.Birth[name]; !there {
			f.born(name, ino)
		}
	}
	i.birth = f.Birth
	if i.attempt == 0 && i.looks < maxRestartLooks {
		i.looks++
		i.attempt = s.readRestarts(f)
	}
	f.Attempt = i.attempt
}

// readRestarts returns the attempt's number, 0 = unknown. The batch step knows it; of other steps
// a count goes before none, since an srun from outside the job has none.
func (s *Scanner) readRestarts(f *Found) (attempt int) {
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
			env := hostfs.Env(data, "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT")
			restarts, err := strconv.ParseUint(env["SLURM_RESTART_COUNT"], 10, 20)
			switch {
			case env["SLURM_JOB_ID"] != f.Key.ID:
			case err == nil: // a job that was never requeued has no count
				return int(restarts) + 1
			case n == 0:
				return 1
			case env["SLURM_STEP_ID"] != "":
				attempt = 1
			}
		}
	}
	return attempt
}
