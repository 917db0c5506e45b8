import { Injectable, Module } from '@nestjs/common';
import { InjectRepository, TypeOrmModule } from '@nestjs/typeorm';
import { Protect } from 'nestjs-weir';
import { Column, Entity, PrimaryColumn, Repository } from 'typeorm';

@Entity('orders')
class Order {
  @PrimaryColumn()
  id!: number;

  @Column({ type: 'varchar', length: 40 })
  item!: string;
}

@Injectable()
export class TypeOrmOrders {
  constructor(@InjectRepository(Order) private readonly orders: Repository<Order>) {}

  @Protect('db', { call: (id: number) => ({ label: `order ${id}` }) })
  find(id: number): Promise<Order | null> {
    return this.orders.findOneBy({ id });
  }
}

@Module({
  imports: [
    TypeOrmModule.forRootAsync({
      useFactory: () => ({
        type: 'mariadb',
        url: process.env['DATABASE_URL'],
        entities: [Order],
        // As many connections as `bulkhead.maxInFlight` of the resource.
        poolSize: 20,
      }),
    }),
    TypeOrmModule.forFeature([Order]),
  ],
  providers: [TypeOrmOrders],
})
export class TypeOrmOrdersModule {}
