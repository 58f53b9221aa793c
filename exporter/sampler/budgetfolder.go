package sampler

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"pitchpipe/exporter/api"
)

// ErrBudgetFile means that a file is there and is no budget that may be believed.
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
	// Trusted are the users beside root who may write there.
	Trusted []uint32
}

// Budget is that of a job; ok is false where no file is there. Every error is ErrBudgetFile.
func (f BudgetFolder) Budget(manager, id string) (b api.Budget, ok bool, err error) {
	for _, part := range []string{manager, id} {
		if part == "" || part[0] == '.' || strings.ContainsAny(part, "/\x00") {
			return api.Budget{}, false, fmt.Errorf("%w: no file can be called %q", ErrBudgetFile, part)
		}
	}
	file, err := os.OpenFile(filepath.Join(f.Path, manager, id), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return api.Budget{}, false, nil
	}
	if err != nil {
		return api.Budget{}, false, fmt.Errorf("%w: %w", ErrBudgetFile, err)
	}
	defer func() { _ = file.Close() }() // only read
	st, err := file.Stat()
	if err == nil {
		err = f.trusted(st, file.Name())
	}
	// Who can write a folder can put another job's file into it.
	for _, dir := range []string{filepath.Join(f.Path, manager), f.Path} {
		if err != nil {
			break
		}
		var above fs.FileInfo
		if above, err = os.Stat(dir); err == nil {
			err = f.trusted(above, dir)
		}
	}
	switch {
	case err != nil:
	case !st.Mode().IsRegular() || st.Size() > maxBudgetFile:
		err = fmt.Errorf("%s is no file of at most %d bytes", file.Name(), maxBudgetFile)
	default:
		var text []byte
		if text, err = io.ReadAll(io.LimitReader(file, maxBudgetFile)); err == nil {
			b, err = api.ParseBudget(text)
		}
	}
	if err != nil {
		return api.Budget{}, false, fmt.Errorf("%w: %s/%s: %w", ErrBudgetFile, manager, id, err)
	}
	return b, b.Joules > 0, nil
}

func (f BudgetFolder) trusted(st fs.FileInfo, name string) error {
	sys, ok := st.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return fmt.Errorf("whose %s is, is not known", name)
	case sys.Uid != 0 && !slices.Contains(f.Trusted, sys.Uid):
		return fmt.Errorf("%s belongs to user %d: want root", name, sys.Uid)
	case st.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("others can write %s: its mode is %v", name, st.Mode().Perm())
	}
	return nil
}
