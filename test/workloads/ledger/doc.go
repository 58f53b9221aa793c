// Package ledger books transfers between accounts, all under one lock.
//
// In come an input number and a seed that make the accounts; out comes, per epoch of
// many transfers, how unequal the accounts have become (as loss) and whether the sum of
// them is what it was (as acc: 1 or 0). Whoever books holds the lock for nearly all of
// his work, so a second thread brings nothing and costs the handing over. Transfers
// commute: the accounts end up the same on any number of threads.
package ledger
