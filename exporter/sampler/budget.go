package sampler

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/collector/energy"
)

// budget looks what the administrator lets jobs use. What cannot be read keeps what
// was read before: a file that is being written must not lift a limit.
func (s *Sampler) budget(jobs ...*job) {
	if s.cfg.Budget == nil {
		return
	}
	type answer struct {
		of     attrib.Key
		budget api.Budget
		err    error
	}
	all := make([]answer, len(jobs))
	for i, j := range jobs {
		all[i].of = j.stored
	}
	silent := s.worker("budget").Each(len(all), func(i int) {
		a := &all[i]
		a.budget, a.err = s.cfg.Budget(a.of.Manager, a.of.ID)
	})
	if silent != nil {
		all = slices.Repeat([]answer{{err: silent}}, len(jobs))
	}
	for i, j := range jobs {
		if all[i].err != nil {
			s.stats.ReadErrors++
		} else {
			s.store.Allow(j.stored, api.ByAdministrator, all[i].budget)
		}
		j.budgetFault.set(s.log, all[i].err, "the budget that an administrator wrote for", j.stored)
	}
}

// UserJoules is what the jobs of one user were charged with since the exporter began.
type UserJoules struct {
	UID    uint32
	Joules energy.Joules
}

// maxUsers is how many users have their joules counted: a node with more forgets those
// first that have no job and took least.
const maxUsers = 256

func (s *Sampler) userJoules() []UserJoules {
	busy := map[uint32]int{}
	for _, j := range s.jobs {
		busy[j.uid] = 1
	}
	all := slices.SortedFunc(maps.Keys(s.ledger.users), func(a, b uint32) int {
		return cmp.Or(busy[b]-busy[a], cmp.Compare(s.ledger.users[b].Total(), s.ledger.users[a].Total()))
	})
	for _, uid := range all[min(len(all), maxUsers):] {
		delete(s.ledger.users, uid)
	}
	out := make([]UserJoules, 0, len(s.ledger.users))
	for _, uid := range slices.Sorted(maps.Keys(s.ledger.users)) {
		out = append(out, UserJoules{uid, s.ledger.users[uid]})
	}
	return out
}

// ErrBudgetFile means that a file is there but is not a trusted budget.
var ErrBudgetFile = errors.New("budget")

// A budget is a line.
const maxBudgetFile = 4 << 10

// BudgetFolder reads the administrator's budgets: files <folder>/<manager>/<id>, such as
// slurm/42 or nomad/ALLOCATION.TASK, that a prolog writes and an epilog removes, in the
// form that api.ParseBudget reads:
//
//	mkdir -p /run/pitchpipe/budgets/slurm
//	echo "joules=2e6 seconds=$(( SLURM_JOB_END_TIME - SLURM_JOB_START_TIME ))" >/run/pitchpipe/budgets/slurm/$SLURM_JOB_ID
//
// Only files of jobs that run are read, once per sample. A file, or a folder on the way to
// it, that another user than root and the exporter's own can write is refused.
type BudgetFolder struct {
	Path string
	// Trusted are the users besides root who may write there.
	Trusted []uint32
}

// Budget is that of a job, without joules where no file is there. Every error is ErrBudgetFile.
func (f BudgetFolder) Budget(manager, id string) (api.Budget, error) {
	name := manager + "/" + id
	if strings.HasPrefix(id, ".") || strings.Count(name, "/") != 1 || !filepath.IsLocal(name) {
		return api.Budget{}, fmt.Errorf("%w: no file can be called %q", ErrBudgetFile, name)
	}
	b, err := f.read(filepath.Join(f.Path, name))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return api.Budget{}, nil
	}
	if err != nil {
		return api.Budget{}, fmt.Errorf("%w: %s: %w", ErrBudgetFile, name, err)
	}
	return b, nil
}

func (f BudgetFolder) read(path string) (b api.Budget, err error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return b, err
	}
	defer func() { _ = file.Close() }() // only read
	st, err := file.Stat()
	if err != nil {
		return b, err
	}
	if !st.Mode().IsRegular() || st.Size() > maxBudgetFile {
		return b, fmt.Errorf("it is no file of at most %d bytes", maxBudgetFile)
	}
	if err := f.trusted(st, path); err != nil {
		return b, err
	}
	// A user who can write a folder can put another job's file into it.
	for _, dir := range []string{filepath.Dir(path), f.Path} {
		above, err := os.Stat(dir)
		if err == nil {
			err = f.trusted(above, dir)
		}
		if err != nil {
			return b, err
		}
	}
	text, err := io.ReadAll(io.LimitReader(file, maxBudgetFile))
	if err != nil {
		return b, err
	}
	return api.ParseBudget(text)
}

func (f BudgetFolder) trusted(st fs.FileInfo, name string) error {
	sys, ok := st.Sys().(*syscall.Stat_t)
	switch {
	case !ok || sys.Uid != 0 && !slices.Contains(f.Trusted, sys.Uid):
		return fmt.Errorf("%s belongs to another user: want root", name)
	case st.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("others can write %s: its mode is %v", name, st.Mode().Perm())
	}
	return nil
}
