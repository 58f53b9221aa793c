package attrib

// Own makes the scanner believe that all files are the administrator's but those
// named, so that tests need no root.
func (s *Scanner) Own(admin uint32, others map[string]uint32) {
	owner := identity(func(path string, _ uint32) uint32 {
		if uid, ok := others[path]; ok {
			return uid
		}
		return admin
	})
	s.procs.owner, s.procs.stepds.owner, s.procs.self = owner, owner, admin
}

// ParseStir reads /proc/loadavg; zeros mean that it tells nothing.
func ParseStir(data []byte) (threads int, newest uint64) {
	s := parseLoadavg(data)
	return s.threads, s.newest
}

// ParseDescent reads /proc/<pid>/stat; image is empty where it is not told.
func ParseDescent(data []byte) (parent int, start uint64, image []uint64, ok bool) {
	d, ok := parseDescent(data)
	if d.image.known() {
		image = []uint64{d.image.code, d.image.stack, d.image.environ}
	}
	return d.parent, d.start, image, ok
}
