package cgroup

// Limit is limit, for a directory that stands for a leaf with its files.
func (l Leaf) Limit(limits Limits) error { return l.limit(limits) }

// ParseStat is parseStat.
func ParseStat(pid int, text string) (Process, error) { return parseStat(pid, []byte(text)) }
