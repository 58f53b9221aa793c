package attrib

// Own makes the scanner believe that all files are the administrator's but those
// named, so that tests need no root.
func (s *Scanner) Own(admin uint32, others map[string]uint32) {
	s.self, s.owner = admin, func(path string, _ uint32) uint32 {
		if uid, ok := others[path]; ok {
			return uid
		}
		return admin
	}
}
