package daemon

// isOff tells whether tuning is switched off under this key, which is a job's id
// or what requestKey returned.
func (p *pauses) isOff(key string) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	_, off := p.off[key]
	return off
}

// switchOn takes back a switchOff of a job that does not come into being.
func (p *pauses) switchOn(key string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.store.Delete(bucketOff, key); err != nil {
		return err
	}
	delete(p.off, key)
	return nil
}
