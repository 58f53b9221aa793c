// Package advise gives a scheduler better numbers about jobs that run under their owners' own settings.
//
// Input: the jobs that wait and run, each with its forecast and what the site allows (For).
// Output: advice, each piece with its rule and where that rule was set: a waiting job's time
// limit lowered to an upper quantile of its forecast, so that backfill finds a place for it
// (Tsafrir, Etsion, Feitelson 2007, "Backfilling using system-generated predictions"); a running
// job's limit raised to its owner's before the job meets a lower one; a nice value by the expected
// work, so that short jobs go first; a preference for the class of nodes on which jobs like it ended
// sooner; and which jobs leave so many of their cores idle that two of them fit where one is. For is pure.
//
// A Service takes advice to the scheduler in rounds. Each looks at the queue, learns from the jobs
// that ended, and decides. Where the site applies advice, a job's intent (Given) is audited and
// durable before the scheduler hears of it, is repeated until it is answered, and is taken back
// where the job is switched off or paused, or the site changes its mind. A job is advised once.
//
// Advice never exceeds what the owner asked for. A job of which too little is known gets none, nor does
// one that the tuner changes. Where no controller lives, the scheduler's side raises limits again.
package advise
