package cgroup

// LimitV2 is limitV2, for a directory that stands for a leaf with its files.
func (t Tree) LimitV2(dir string, limits Limits) error { return t.limitV2(dir, limits) }
