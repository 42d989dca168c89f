import sqlite3
base = sqlite3.connect(':memory:')
base.execute('create table t (a integer, b text)')
base.executemany('insert into t values (?, ?)', ((i * 7919 % 100003, str(i)) for i in range(150000)))
base.execute('create index i on t (a)')
print(base.execute('select count(*), sum(length(b)) from t where a between 1000 and 50000').fetchone())
