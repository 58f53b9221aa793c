package slurm_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/test/slurmcluster"
)

// deployment is a controller that runs.
type deployment struct {
	mode      string // as the table names it
	partition string // whose jobs it sees
	user      string // whose job files are tuned
	socket    string
	client    *api.Client
	kill      func()                    // kills the controller
	again     func(s *stage) deployment // starts another in its place
}

// ownDeployment starts Alpha's own controller.
func (s *stage) ownDeployment() deployment {
	s.t.Helper()
	dir := filepath.Join(s.c.Home(slurmcluster.Alpha), ownerDir)
	s.as(slurmcluster.Alpha, "mkdir", "-m", "700", dir)
	if err := os.WriteFile(filepath.Join(dir, "site.yaml"), []byte(policy), 0o644); err != nil { //nolint:gosec // Alpha's controller reads it
		s.t.Fatal(err)
	}
	return s.startOwn("owner.log")
}

// startOwn starts the controller in the folder that Alpha has for it.
func (s *stage) startOwn(log string) deployment {
	s.t.Helper()
	dir := filepath.Join(s.c.Home(slurmcluster.Alpha), ownerDir)
	cmd, err := s.c.Command(context.WithoutCancel(s.t.Context()), slurmcluster.Alpha, s.w.path("roles"), roleController, dir, s.socket, s.w.path("hooks", "wake"))
	if err != nil {
		s.t.Fatal(err)
	}
	kill := s.spawn(cmd, log)
	h := s.open("owner", ownerPartition, slurmcluster.Alpha, filepath.Join(dir, "controller.sock"))
	h.kill, h.again = kill, func(s *stage) deployment { return s.startOwn("owner-again.log") }
	return h
}

// siteDeployment starts the controller of a site and its broker, the programs that ship: the
// controller under an ordinary account, the broker under that with Slurm's administrator
// level Operator. A proxy between the controller and the exporter hides the machine's other
// work; the jobs' listeners talk to the exporter itself.
func (s *stage) siteDeployment() deployment {
	s.t.Helper()
	broker, site := s.folder("broker-run", slurmcluster.Operator), s.folder("site", slurmcluster.Controller)
	s.spawnAs(slurmcluster.Operator, "broker.log", "pitchpipe", "broker", "--config=", "--broker.socket="+filepath.Join(broker, "broker.sock"),
		"--broker.dir="+s.folder("broker", slurmcluster.Operator), "--broker.controller="+slurmcluster.Controller, "--broker.above="+sitePartition)
	calm := filepath.Join(site, "calm.sock")
	s.spawnAs(slurmcluster.Controller, "calm.log", "roles", roleCalm, calm, s.socket)
	for _, socket := range []string{calm, filepath.Join(broker, "broker.sock")} {
		s.await(socket, func() error { _, err := os.Stat(socket); return err })
	}
	if err := os.WriteFile(filepath.Join(site, "site.yaml"), []byte(policy), 0o644); err != nil { //nolint:gosec // the controller reads it
		s.t.Fatal(err)
	}
	return s.startSite("site.log")
}

// startSite starts the controller in the folder that the site has for it.
func (s *stage) startSite(log string) deployment {
	s.t.Helper()
	site := s.w.path("site")
	socket := filepath.Join(site, "controller.sock")
	kill := s.spawnAs(slurmcluster.Controller, log, "pitchpipe", "controller", "--config=", "--driver=slurm", "--slurm.mode=site",
		"--slurm.plugin=true", "--slurm.task_prolog=true", "--slurm.settings="+s.w.path("site-settings"), "--slurm.interval=300ms", "--slurm.wake="+s.w.path("hooks", "wake"),
		"--slurm.partitions="+sitePartition, "--slurm.broker="+s.w.path("broker-run", "broker.sock"), "--socket="+socket,
		"--state="+filepath.Join(s.c.Home(slurmcluster.Controller), "state"), "--exporter.socket="+filepath.Join(site, "calm.sock"), "--listen=",
		"--site="+filepath.Join(site, "site.yaml"), "--resync=2s")
	h := s.open("site", sitePartition, slurmcluster.Beta, socket)
	h.kill, h.again = kill, func(s *stage) deployment { return s.startSite("site-again.log") }
	return h
}

// spawnAs is spawn of one of the programs, as a user.
func (s *stage) spawnAs(user, log, program string, args ...string) (kill func()) {
	s.t.Helper()
	cmd, err := s.c.Command(context.WithoutCancel(s.t.Context()), user, s.w.path(program), args...)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.spawn(cmd, log)
}

// folder makes one that everybody can enter and the user can write.
func (s *stage) folder(name, user string) string {
	s.t.Helper()
	path := s.w.path(name)
	if err := errors.Join(os.Mkdir(path, 0o755), give(path, user)); err != nil { //nolint:gosec // sockets in it are for others
		s.t.Fatal(err)
	}
	return path
}

// open waits until a controller answers.
func (s *stage) open(mode, partition, user, socket string) deployment {
	s.t.Helper()
	h := deployment{mode: mode, partition: partition, user: user, socket: socket, client: api.NewClient(socket)}
	s.t.Cleanup(h.client.Close)
	s.await("the controller", func() error { _, err := h.client.Jobs(s.t.Context()); return err })
	return h
}

// follow logs the history of jobs where the test fails.
func (s *stage) follow(h deployment, subs ...submission) {
	s.t.Helper()
	s.t.Cleanup(func() {
		for _, sub := range subs {
			s.tell(h.client, sub)
		}
	})
}
