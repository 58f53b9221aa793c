// Package sim is a deterministic simulated cluster whose jobs' behaviour is
// written in the job file.
//
// Input: sbatch scripts with #SBATCH, #TUNE and #SIM lines, intents, and faults
// to inject. Output: what a scheduler would say (Cluster is a driver.Driver) and
// what an exporter on its nodes would say (Cluster.Window, Cluster.Node). It never
// runs a script, opens a file, or touches anything outside its own memory.
//
// # Time
//
// The package uses package time and nothing else of the world. In a
// testing/synctest bubble a cluster is therefore deterministic and costs no time;
// outside it runs in real time. What happens is put on an agenda at exact
// instants, and every call first lets happen what was due: what a caller sees
// never depends on how late it looks. New starts nothing; one timer serves the
// agenda, and each Watch has one goroutine. Close ends them all.
//
// # How jobs run
//
// Jobs wait in one queue and start first come first served; the first that finds
// no room keeps those behind it waiting. A job held by Spec.NotBefore keeps its
// place and holds no other up. A job that goes on after a checkpoint queues again
// at the end, and loses its room to those before it: it is moved to more than it has only
// where that is free and no job waits (driver.ErrNoRoom). Requests for cores and memory are
// never oversubscribed. A job without a memory limit takes no memory from its node.
//
// A job that is asked to save finishes its epoch, needs checkpoint= to save,
// writes the line "saved", and leaves; its next attempt goes on with the epoch
// after it, so that no epoch is done twice. During start= it saves when start= is
// over. In its last epoch it just ends. A job that saves after the grace of its
// intent goes on by itself under the settings that it had. A job without
// checkpoint= and without ignore_signal= dies of the signal.
//
// An intent with Discard ends the attempt at once, with the exit status 137. The next
// attempt goes on after the last epoch that was saved, so that the epochs since then are in
// the output again.
//
// A job that outgrows its memory limit is killed in the middle of its first
// epoch. Under a change it runs again, first with its owner's memory where the
// change had less, then with all of its owner's settings: only under these does a
// lack of memory end the job.
//
// The output of all attempts is one text, with one line for each epoch:
//
//	epoch 3/40 loss 1.7294 acc 0.2814
//
// # Outlook
//
// Cluster.Outlook says how long the job would queue if its attempt saved and left
// now: the queue is played through in the order in which it is served, with the
// declared time limits of what runs and of what starts before the job. Where what
// it waits for has no limit, the wait is unknown, and Wait is nil. With queue_wait=
// the cluster says that instead, and keeps its word: each attempt after the first
// waits so long before it may start. closed_at= and closed_by= are only told:
// nothing happens when the time comes.
//
// # The settings file
//
// Change.Live is kept for each attempt. A simulated job reads it as a job that
// looks into the file of PITCHPIPE_SETTINGS: where threads= or batch= is a name in
// the file, that value counts. The file is there where the job file names a live
// knob, and from the first live change on; its revision is the attempt's number.
//
// # The #SIM lines
//
// They are at the beginning of a line before the first command and hold key=value pairs
// without spaces or quotes. All lines count as one. Each key is given once; epochs and
// seconds are needed, before at and hang_at. Every fault is reported with its line.
//
//	key                   default          meaning
//	epochs                needed           epochs in all
//	seconds               needed           work of one epoch: seconds on one core at batch size base
//	parallel              0                Amdahl's share p: an epoch on c cores takes seconds * ((1-p) + p/c)
//	threads               OMP_NUM_THREADS  variable with the number of threads; c is at most that many
//	chosen_threads        0                threads of a program whose variable is not set; 0 = one for each core
//	oversubscribe         0                share of time added for each thread per core beyond the first
//	saturate              0                cores beyond which p gets no faster, as where memory is the limit; they look busy; 0 = none
//	coherence             0                time added for each core beyond the first, as a share of seconds, in which all cores look busy
//	drift                 0                share by which the last epoch takes longer than the first, evenly in between; below 0 = shorter
//	start                 0s               start-up cost of each attempt
//	noise                 0                sigma of the lognormal factor of each epoch, mean 1
//	run_noise             0                the same for each attempt as a whole
//	rate_noise            0                the same for each counter rate in each epoch
//	paired                false            all attempts draw the same noise, so that a job that is moved can be compared with one that is not
//	seed                  0                changes the noise, which follows from job name, attempt, seed and Config.Seed
//	batch                 none             variable with the batch size
//	base                  32               batch size that seconds and quality are for; also where the variable is not set
//	exponent              0                an epoch's work scales with (base/batch)^exponent
//	quality               0.9              where the quality tends to at batch size base, from 0
//	quality_per_doubling  0                added to quality for each doubling of the batch size
//	tau                   epochs/5         epochs after which the distance to the end is 1/e; 0 = the default
//	memory                64MiB            peak
//	checkpoint            does not save    time to save after the end of the epoch
//	checkpoint_exit       85               exit status that means saved; none = it writes "saved" and goes on
//	ignore_signal         false            the signal changes nothing
//	exit                  0                exit status at the end, or in epoch at
//	at                    0                epoch at whose end it exits with exit, without its line; 0 = after the last
//	hang_at               0                epoch that never ends; 0 = none
//	missing               false            the command does not exist
//	show_env              none             variable that each attempt writes as "env NAME=VALUE"
//	show_settings         false            each attempt writes "settings JSON", the content of its settings file, or "settings none"
//	contended             none             epochs such as 3-5,8 in which others take a fifth of the node (steal), so that they take 1.25 times as long
//	owner_changes_at      never            time after submission at which the owner edits the job
//	dies_at               never            time after the start of an attempt at which its supervisor dies
//	queue_wait            by the queue     time that each attempt after the first waits before it may start
//	closed_at             never            time after submission at which a reservation or maintenance takes the nodes
//	closed_by             none             its name
//	watts_idle            40               power of the whole idle node; the job is charged the share of its cores
//	watts_core            8                power of one busy core
//	profile               compute          compute, stream, barrier, alloc or io: what the counters show
//	spin                  by profile       share of waiting cores' time that is burnt
//
// Variables are those of the job file, replaced by those of the submission,
// replaced by those of the change; but a script that sets one to a literal has the
// last word, as in reality.
//
// # Imports
//
// Of the exporter the package imports the wire types in exporter/api only.
package sim
