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

// parse reads lines of OWNER:FIRST:COUNT. An owner who is not in /etc/passwd is named by
// the first of the uids.
func parse(text string) []span {
	uids := map[string]uint32{}
	passwd, _ := os.ReadFile("/etc/passwd") // without it each owner is such a one
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
		if err1 != nil || err2 != nil || count == 0 || first == 0 {
			continue
		}
		if _, known := uids[f[0]]; !known {
			uids[f[0]] = uint32(first)
			if uid, err := strconv.ParseUint(f[0], 10, 32); err == nil {
				uids[f[0]] = uint32(uid)
			}
		}
		out = append(out, span{first, min(first+count-1, math.MaxUint32-1), uids[f[0]]})
	}
	return out
}
