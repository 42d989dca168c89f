from multiprocessing import Pool
def work(n):
    return sum(i * i for i in range(n))
if __name__ == '__main__':
    with Pool(2) as pool:
        pool.map(work, [200_000] * 8)
