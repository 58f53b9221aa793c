package peercred

import (
	"cmp"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Subordinates are the uids that users may take beside their own, as /etc/subuid gives
// them out. It is read again when it changes.
type Subordinates struct {
	Path string // empty = /etc/subuid

	mu     sync.Mutex
	seen   time.Time // when the file that was read was last changed
	size   int64
	ranges []span
}

type span struct {
	first, last uint64
	owner       uint32
}

// owner returns the user who holds a uid: its own one where it is no subordinate.
func (s *Subordinates) owner(uid uint32) uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := cmp.Or(s.Path, "/etc/subuid")
	info, err := os.Stat(path)
	if err != nil {
		return uid
	}
	if !info.ModTime().Equal(s.seen) || info.Size() != s.size {
		if text, err := os.ReadFile(path); err == nil {
			s.seen, s.size, s.ranges = info.ModTime(), info.Size(), parse(string(text))
		}
	}
	for _, r := range s.ranges {
		if uint64(uid) >= r.first && uint64(uid) <= r.last {
			return r.owner
		}
	}
	return uid
}

// Above that a range is no user's: it covers the machine's own.
const maxRange = 1 << 24

// parse reads lines of OWNER:FIRST:COUNT, in which the owner is a name in /etc/passwd or a
// uid. A range of root's or of a program that is not installed, such as lxd, counts for
// nothing: other users may be in it, who would share one share.
func parse(text string) []span {
	uids := map[string]uint32{}
	passwd, _ := os.ReadFile("/etc/passwd") // without it only uids are owners
	for line := range strings.Lines(string(passwd)) {
		if f := strings.Split(line, ":"); len(f) > 2 {
			if uid, err := strconv.ParseUint(f[2], 10, 32); err == nil {
				uids[f[0]] = uint32(uid)
			}
		}
	}
	var out []span
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) != 3 {
			continue
		}
		first, err1 := strconv.ParseUint(f[1], 10, 32)
		count, err2 := strconv.ParseUint(f[2], 10, 32)
		if err1 != nil || err2 != nil || count == 0 || count > maxRange || first == 0 {
			continue
		}
		owner := uids[f[0]] // 0 = it is root, or there is none
		if uid, err := strconv.ParseUint(f[0], 10, 32); err == nil {
			owner = uint32(uid)
		}
		if owner != 0 {
			out = append(out, span{first, min(first+count-1, math.MaxUint32-1), owner})
		}
	}
	return out
}
