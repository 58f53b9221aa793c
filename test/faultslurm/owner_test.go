package faultslurm_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/driver"
	"pitchpipe/driver/move"
	"pitchpipe/driver/slurm"
	"pitchpipe/test/fault"
	"pitchpipe/test/sandbox"
	"pitchpipe/test/slurmcluster"
)

// owner is a user with jobs, and the controller that tunes them: his own, or that of
// the site, which runs under an account without rights and has a broker.
type owner struct {
	w         *world
	name      string
	account   string // of the controller
	partition string
	uid, gid  int // of the account
	home      string
	dir       string // the controller's; its own small file system where possible
	orders    string // for the hook of the controller
	disk      bool   // dir is its own file system
	client    *api.Client

	controller *fault.Keeper
	broker     *fault.Keeper // nil where the controller acts by its own rights
	hand       *fault.Hand   // that moves the jobs without a tuner
}

// diskBytes is how large the disk of a controller is: large enough for the database
// of what it knows, and soon full.
const diskBytes = 24 << 20

// newOwner starts a user's own controller, or with site that of a site and its broker.
func newOwner(w *world, name string, site bool) *owner {
	w.t.Helper()
	o := &owner{
		w: w, name: name, account: name, partition: ownPartition, home: w.c.Home(name), dir: filepath.Join(w.dir, "state-"+name),
		orders: filepath.Join(w.dir, "orders-"+name),
	}
	mode := os.FileMode(0o700)
	if site {
		o.account, o.partition, mode = slurmcluster.Controller, sitePartition, 0o755
		o.dir = w.siteDir()
	}
	o.uid, o.gid = ids(w, o.account)
	if err := errors.Join(os.Mkdir(o.dir, mode), os.Mkdir(o.orders, 0o700)); err != nil {
		w.t.Fatal(err)
	}
	o.mount(mode)
	settings := filepath.Join(o.dir, filepath.Base(settingsFolder))
	err := errors.Join(
		os.Mkdir(settings, 0o755), os.Symlink(o.dir, filepath.Join(o.home, stateFolder)),
		os.WriteFile(filepath.Join(o.orders, "site.yaml"), []byte(policy), 0o644), //nolint:gosec // the controller reads it
		os.Chown(o.dir, o.uid, o.gid), os.Chown(o.orders, o.uid, o.gid), os.Chown(settings, o.uid, o.gid),
	)
	if err != nil {
		w.t.Fatal(err)
	}
	if !w.tuned {
		o.hand = newHand(o)
		return o
	}
	if site {
		o.startBroker()
	}
	o.client = api.NewClient(filepath.Join(o.dir, "controller.sock"))
	w.t.Cleanup(o.client.Close)
	o.controller = fault.Keep(w.t, "the controller of "+name, o.log(), o.launch)
	o.awaken()
	return o
}

// mount gives the controller its own small disk. Where this machine has no right to
// mount, its disk is not filled.
func (o *owner) mount(mode os.FileMode) {
	options := fmt.Sprintf("size=%d,mode=%o,uid=%d,gid=%d", diskBytes, mode, o.uid, o.gid)
	if err := unix.Mount("tmpfs", o.dir, "tmpfs", 0, options); err != nil {
		o.w.story.Logf("no small disk for a controller: %v", err)
		return
	}
	o.disk = true
	o.w.t.Cleanup(func() {
		if err := unix.Unmount(o.dir, unix.MNT_DETACH); err != nil {
			o.w.t.Errorf("unmount %s: %v", o.dir, err)
		}
	})
}

// startBroker starts the site's broker under the account of the Operator.
func (o *owner) startBroker() {
	o.w.t.Helper()
	uid, gid := ids(o.w, slurmcluster.Operator)
	for _, dir := range []string{o.brokerDir(), o.brokerOrders()} {
		if err := errors.Join(os.Mkdir(dir, 0o755), os.Chown(dir, uid, gid)); err != nil { //nolint:gosec // the socket in it is for the controller
			o.w.t.Fatal(err)
		}
	}
	o.broker = fault.Keep(o.w.t, "the broker", filepath.Join(o.w.dir, "broker.log"), func() (*exec.Cmd, error) {
		cmd, err := o.w.c.Command(context.WithoutCancel(o.w.t.Context()), slurmcluster.Operator, o.w.program("controller"), roleBroker, o.brokerDir())
		if err == nil {
			cmd.Env = append(cmd.Env, envOrders+"="+o.brokerOrders(), fmt.Sprintf("%s=%d", envController, o.uid))
		}
		return cmd, err
	})
	await(o.w.t, "the broker", func() error { _, err := os.Stat(filepath.Join(o.brokerDir(), brokerSocket)); return err })
}

func (o *owner) brokerDir() string    { return filepath.Join(o.w.dir, "broker") }
func (o *owner) brokerOrders() string { return filepath.Join(o.w.dir, "orders-broker") }

func (o *owner) launch() (*exec.Cmd, error) {
	cmd, err := o.w.c.Command(context.WithoutCancel(o.w.t.Context()), o.account, o.w.program("controller"), roleController, o.dir)
	if err != nil {
		return nil, err
	}
	cmd.Env = append(cmd.Env, envExporter+"="+o.w.exporter, envOrders+"="+o.orders, envPartition+"="+o.partition)
	if o.broker != nil {
		cmd.Env = append(cmd.Env, envBroker+"="+filepath.Join(o.brokerDir(), brokerSocket))
	}
	return cmd, nil
}

func ids(w *world, name string) (uid, gid int) {
	w.t.Helper()
	u, err := user.Lookup(name)
	if err != nil {
		w.t.Fatal(err)
	}
	uid, err = strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	if err := errors.Join(err, err2); err != nil {
		w.t.Fatal(err)
	}
	return uid, gid
}

// log is the file that all controllers of the owner wrote.
func (o *owner) log() string { return filepath.Join(o.w.dir, "controller-"+o.name+".log") }

// awaken waits until the controller answers.
func (o *owner) awaken() {
	o.w.t.Helper()
	await(o.w.t, "the controller of "+o.name, func() error {
		_, err := o.client.Jobs(o.w.t.Context())
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, sandbox.Tail(o.log(), 20))
		}
		return err
	})
}

// moving are the jobs that an intent is in progress for, and those that wait for its
// attempt: by the driver's own records, and not of jobs with which Slurm has done.
func (o *owner) moving() map[string]move.Phase {
	out := map[string]move.Phase{}
	if o.hand != nil {
		for _, id := range o.hand.Moving() {
			out[id] = "by hand"
		}
		return out
	}
	for id, r := range o.records() {
		switch {
		case o.w.known(id) == nil || r.Last != nil:
		case r.Moving != nil:
			out[id] = r.Moving.Phase
		case r.Next != nil:
			out[id] = "queued"
		}
	}
	return out
}

// records are those of the driver.
func (o *owner) records() map[string]*slurm.Record {
	out := map[string]*slurm.Record{}
	dir := filepath.Join(o.dir, "jobs")
	entries, err := os.ReadDir(filepath.Join(dir, "jobs"))
	if err != nil {
		return out
	}
	j, err := slurm.OpenJournal(dir)
	if err != nil {
		return out
	}
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok {
			continue
		}
		if r, err := j.Read(driver.JobID(id)); err == nil {
			out[id] = r
		}
	}
	return out
}

// explain is what the controller says about a job; nothing without one.
func (o *owner) explain(id string) (api.Story, error) {
	if o.client == nil {
		return api.Story{}, nil
	}
	return o.client.Explain(o.w.t.Context(), id)
}

// keepers are the programs that the owner's jobs are moved by.
func (o *owner) keepers() []*fault.Keeper {
	return slices.DeleteFunc([]*fault.Keeper{o.controller, o.broker}, func(k *fault.Keeper) bool { return k == nil })
}

// as runs a command as the owner.
func (o *owner) as(program string, args ...string) (string, error) {
	return o.w.run(o.name, program, args...)
}

// fill makes the disk full, and returns what frees it.
func (o *owner) fill() (free func() error, err error) {
	path := filepath.Join(o.dir, "filler")
	free = func() error { return os.Remove(path) }
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	block := make([]byte, 64<<10)
	for size := len(block); size > 0; {
		if _, err = f.Write(block[:size]); err != nil {
			size /= 2
		}
	}
	err = f.Close()
	return free, err
}

// exec of a command that goes on in the background.
func (o *owner) background(program string, args ...string) (*exec.Cmd, error) {
	return o.w.c.Command(context.WithoutCancel(o.w.t.Context()), o.name, program, args...)
}
