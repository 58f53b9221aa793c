package sim

// StopTimer keeps the cluster asleep until somebody asks it something, as a
// machine under load would.
func (c *Cluster) StopTimer() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timer.Stop()
}
