package sacct

import (
	"cmp"
	"maps"
	"slices"
)

// headroom is what the tuner leaves above the largest memory seen.
const headroom = 1.25

// Summary is what the history tells.
type Summary struct {
	Total  Line   `json:"total"`
	Users  []Line `json:"users"`
	Groups []Line `json:"accounts"`
	Names  []Line `json:"names"` // by user and job name, which is what a returning job is recognised by
	// Open are runs that have not ended, or whose state is not known: left out.
	Open int `json:"open"`
	// Left are lines that could not be read: left out.
	Left int `json:"lines_left_out"`
}

// Line sums runs up. The pairs of numbers that are compared are of the same runs,
// those that have both.
type Line struct {
	Key       string  `json:"key"`
	Runs      int     `json:"runs"`
	CoreHours float64 `json:"core_hours"` // allocated
	Timed     int     `json:"runs_with_core_hours"`

	// Runs whose processor time is known.
	CPURuns   int     `json:"runs_with_cpu_time"`
	Allocated float64 `json:"core_hours_of_these"`
	Used      float64 `json:"core_hours_used"`
	Unused    float64 `json:"core_hours_unused"` // of each run: that one used more than it was allocated makes up for no other

	// Runs whose memory asked for and peak are both known, in GiB-hours.
	MemoryRuns int     `json:"runs_with_memory"`
	Asked      float64 `json:"gib_hours_asked"`
	Peak       float64 `json:"gib_hours_peak"`
	Spare      float64 `json:"gib_hours_spare"` // asked for above 1.25 times the peak

	// Runs of a user and name that ran before in this history.
	Returning      int     `json:"returning_runs"`
	ReturningHours float64 `json:"returning_core_hours"`
}

// Summarise sums runs up, in the order in which sacct printed them: of those of
// one user and name the first is new and the others return.
func Summarise(jobs []Job) Summary {
	s := Summary{Total: Line{Key: "total"}}
	users, accounts, names := map[string]*Line{}, map[string]*Line{}, map[string]*Line{}
	seen := map[[2]string]bool{}
	for _, j := range jobs {
		if !j.Ended() {
			s.Open++
			continue
		}
		known := j.User != "" && j.Name != ""
		kind := [2]string{j.User, j.Name}
		returning := known && seen[kind]
		seen[kind] = true
		name := "-"
		if known {
			name = j.User + "/" + j.Name
		}
		for _, l := range []*Line{&s.Total, at(users, j.User), at(accounts, j.Account), at(names, name)} {
			l.add(j, returning)
		}
	}
	s.Users, s.Groups, s.Names = sorted(users), sorted(accounts), sorted(names)
	return s
}

func at(lines map[string]*Line, key string) *Line {
	key = cmp.Or(key, "-")
	if lines[key] == nil {
		lines[key] = &Line{Key: key}
	}
	return lines[key]
}

// sorted puts the lines with most unused core-hours first.
func sorted(lines map[string]*Line) []Line {
	out := make([]Line, 0, len(lines))
	for _, key := range slices.Sorted(maps.Keys(lines)) {
		out = append(out, *lines[key])
	}
	slices.SortStableFunc(out, func(a, b Line) int {
		return cmp.Or(cmp.Compare(b.Unused, a.Unused), cmp.Compare(b.CoreHours, a.CoreHours))
	})
	return out
}

func (l *Line) add(j Job, returning bool) {
	l.Runs++
	if returning {
		l.Returning++
	}
	if j.Elapsed == nil || *j.Elapsed <= 0 {
		return // it never ran, or its time is unknown
	}
	hours := j.Elapsed.Hours()
	if j.CPUs > 0 {
		core := hours * float64(j.CPUs)
		l.Timed++
		l.CoreHours += core
		if returning {
			l.ReturningHours += core
		}
		if j.CPU != nil {
			l.CPURuns++
			l.Allocated += core
			l.Used += j.CPU.Hours()
			l.Unused += max(0, core-j.CPU.Hours())
		}
	}
	if j.Asked > 0 && j.Peak > 0 {
		const gib = 1 << 30
		l.MemoryRuns++
		l.Asked += hours * float64(j.Asked) / gib
		l.Peak += hours * float64(j.Peak) / gib
		l.Spare += hours * max(0, float64(j.Asked)-headroom*float64(j.Peak)) / gib
	}
}
