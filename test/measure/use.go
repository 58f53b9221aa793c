package measure

import (
	"time"

	"github.com/prometheus/procfs"
)

// tick is the unit of CPU time in /proc, on every Linux that Go runs on.
const tick = 10 * time.Millisecond

// Use is what a process used.
type Use struct {
	CPU      time.Duration // with the children that it waited for
	Children time.Duration // CPU of those alone
	RSS      int64         // bytes, now
	Peak     int64         // bytes, ever
}

// Used reads what a process used so far.
func Used(pid int) (Use, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return Use{}, err
	}
	stat, err := p.Stat()
	if err != nil {
		return Use{}, err
	}
	status, err := p.NewStatus()
	if err != nil {
		return Use{}, err
	}
	children := time.Duration(stat.CUTime+stat.CSTime) * tick
	return Use{
		CPU: time.Duration(stat.UTime+stat.STime)*tick + children, Children: children, //nolint:gosec // less than a century
		RSS: int64(status.VmRSS), Peak: int64(status.VmHWM), //nolint:gosec // less than an exabyte
	}, nil
}
