package attrib

import (
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"pitchpipe/exporter/hostfs"
)

// ParseContainer reports which container of Docker owns the cgroup at path: docker/<id>
// where Docker makes cgroups itself, <slice>/docker-<id>.scope where systemd does. base is
// the path of the container's own cgroup, of which the given one may be a descendant.
func ParseContainer(path string) (base, id string, ok bool) {
	s := strings.Split(strings.Trim(path, "/"), "/")
	if len(s) < 2 {
		return "", "", false
	}
	switch {
	case s[0] == "docker":
		id = s[1]
	case strings.HasSuffix(s[0], ".slice"):
		var scope, engine bool
		id, scope = strings.CutSuffix(s[1], ".scope")
		id, engine = strings.CutPrefix(id, "docker-")
		if !scope || !engine {
			return "", "", false
		}
	}
	const digits = 64
	if len(id) != digits || strings.Trim(id, "0123456789abcdef") != "" {
		return "", "", false
	}
	return "/" + s[0] + "/" + s[1], id, true
}

// ParseTask reads off /proc/<pid>/environ which task of which allocation Nomad started
// the process for, in the form in which Nomad names a task's cgroup.
func ParseTask(data []byte) (id string, ok bool) {
	env := hostfs.Env(data, "NOMAD_ALLOC_ID", "NOMAD_TASK_NAME")
	alloc, task := env["NOMAD_ALLOC_ID"], env["NOMAD_TASK_NAME"]
	if task == "" || len(task) > 200 || strings.ContainsAny(task, "/\n") {
		return "", false
	}
	return nomadName(alloc + "." + task)
}

// container is a container that was seen.
type container struct {
	key   Key
	known bool
	age   int // scans in which it had a process, up to settleScans
	seen  uint64
}

// containerDir is a container's cgroup in one hierarchy.
type containerDir struct {
	hierarchy hostfs.Hierarchy
	dir, id   string
	inode     uint64
}

// noteContainer remembers a container's cgroup until all have been walked.
func (s *Scanner) noteContainer(b base, at *dirCache) {
	var st unix.Stat_t
	if s.admin(b, at.dir, &st) {
		s.containerDirs = append(s.containerDirs, containerDir{b.hierarchy, at.dir, at.container, st.Ino})
	}
}

// assignContainers gives the containers of this scan to the tasks that they are of. A container is
// its task's cgroup: the one that Nomad makes for each task is empty beside it.
func (s *Scanner) assignContainers(jobs map[Key]*Found) {
	for _, b := range s.containerDirs {
		c := s.containers[b.id]
		if c == nil {
			c = &container{}
			s.containers[b.id] = c
		}
		if c.seen != s.round {
			c.seen = s.round
			s.open(b, c)
		}
		if !c.known {
			continue
		}
		f := s.note(jobs, b.hierarchy, Owner{Key: c.key}, b.dir)
		if f.Birth == nil {
			f.Birth = map[string]uint64{}
		}
		f.Birth[b.hierarchy.Name] = b.inode
		f.passer = nil // Nomad's executor never goes into a container
		s.contained[c.key] = s.round
	}
	s.containerDirs = s.containerDirs[:0]
}

// open looks whose a container is that is not known yet.
func (s *Scanner) open(b containerDir, c *container) {
	if c.known || c.age >= settleScans || s.procs.trust == TrustNone {
		return
	}
	pids := processes(b.dir)
	if len(pids) == 0 {
		return // it is being made
	}
	if c.age++; !due(c.age - 1) {
		return
	}
	slices.Sort(pids) // the first is most often the one that the engine started
	for _, pid := range pids {
		data, err := hostfs.Read(s.root.Pid(pid, "environ"))
		if err != nil {
			continue
		}
		id, ok := ParseTask(data)
		if !ok {
			continue
		}
		key := Key{Nomad, id, 1}
		for _, other := range s.containers {
			// A task has one container: who names another's task is not believed.
			if other != c && other.known && other.key == key && other.seen+1 >= s.round {
				return
			}
		}
		c.key, c.known = key, true
		return
	}
}

// containerOf is the job of the last scan that owns a container's cgroup.
func (s *Scanner) containerOf(m hostfs.Membership) (Key, bool) {
	base, _, ok := ParseContainer(m.Path)
	if !ok {
		return Key{}, false
	}
	for _, h := range s.hierarchies {
		if key, ok := s.dirs[filepath.Join(h.Dir, base)]; ok && m.In(h) {
			return key, true
		}
	}
	return Key{}, false
}
