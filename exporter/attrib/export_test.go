package attrib

// Own makes the scanner believe that all files are the administrator's but those
// named, so that tests need no root.
func (s *Scanner) Own(admin uint32, others map[string]uint32) {
	owner := func(path string) (uint32, bool) {
		if _, ok := fileOwner(path); !ok {
			return 0, false
		}
		if uid, ok := others[path]; ok {
			return uid, true
		}
		return admin, true
	}
	s.procs.owner, s.procs.stepds.owner, s.procs.self = owner, owner, admin
}
