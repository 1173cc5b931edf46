! ranks: 1 2 3 4 7
! needs: fortran
! Data representations that Fortran programs register: their functions take everything by
! reference, and datatypes as integers. (mpif.h)
subroutine mask_in(user, datatype, count, filed, position, state, code)
  implicit none
  include 'mpif.h'
  integer :: user(*), filed(*), datatype, count, code
  integer(MPI_OFFSET_KIND) :: position
  integer(MPI_ADDRESS_KIND) :: state
  user(position + 1:position + count) = ieor(filed(1:count), int(state))
  code = merge(MPI_SUCCESS, MPI_ERR_TYPE, datatype == MPI_INTEGER)
end subroutine

subroutine mask_out(user, datatype, count, filed, position, state, code)
  implicit none
  include 'mpif.h'
  integer :: user(*), filed(*), datatype, count, code
  integer(MPI_OFFSET_KIND) :: position
  integer(MPI_ADDRESS_KIND) :: state
  filed(1:count) = ieor(user(position + 1:position + count), int(state))
  code = merge(MPI_SUCCESS, MPI_ERR_TYPE, datatype == MPI_INTEGER)
end subroutine

subroutine extent_of(datatype, extent, state, code)
  implicit none
  include 'mpif.h'
  integer :: datatype, code
  integer(MPI_ADDRESS_KIND) :: extent, state
  extent = 4
  code = merge(MPI_SUCCESS, MPI_ERR_TYPE, datatype == MPI_INTEGER)
end subroutine

program fortran_datarep
  implicit none
  include 'mpif.h'
  external :: mask_in, mask_out, extent_of
  character(*), parameter :: name = 'fortran_datarep'
  integer, parameter :: words = 100, mask = 255
  integer :: passed = 0, failed = 0, rank, code, file, request, i
  integer :: data(words), back(words), status(MPI_STATUS_SIZE)
  integer(MPI_OFFSET_KIND) :: mine
  integer(MPI_ADDRESS_KIND) :: state
  character(1024) :: directory

  call get_command_argument(1, directory)
  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  state = mask
  call MPI_Register_datarep('masked  ', mask_in, mask_out, extent_of, state, code)
  call check_ok(code, 'register')
  state = 0
  call MPI_Register_datarep('masked', mask_in, mask_out, extent_of, state, code)
  call check_class(code, MPI_ERR_DUP_DATAREP, 'the name is taken')
  call MPI_Register_datarep('plain', MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, extent_of, state, code)
  call check_ok(code, 'register without conversion')
  call MPI_File_open(MPI_COMM_WORLD, trim(directory) // '/' // name, ior(MPI_MODE_RDWR, MPI_MODE_CREATE), &
                     MPI_INFO_NULL, file, code)
  call check_ok(code, 'open')

  mine = 4 * words * rank
  data = [(1000 * rank + i, i = 1, words)]
  call MPI_File_set_view(file, mine, MPI_INTEGER, MPI_INTEGER, 'masked', MPI_INFO_NULL, code)
  call check_ok(code, 'set_view')
  call MPI_File_write_at_all(file, 0_MPI_OFFSET_KIND, data, words, MPI_INTEGER, status, code)
  call check_ok(code, 'write_at_all')
  back = 0
  call MPI_File_iread_at(file, 0_MPI_OFFSET_KIND, back, words, MPI_INTEGER, request, code)
  call MPI_Wait(request, status, code)
  call check_ok(code, 'iread_at')
  call check(all(back == data), 'what was written is read')
  call MPI_File_set_view(file, mine, MPI_INTEGER, MPI_INTEGER, 'plain', MPI_INFO_NULL, code)
  call check_ok(code, 'set_view without conversion')
  call MPI_File_read_at_all(file, 0_MPI_OFFSET_KIND, back, words, MPI_INTEGER, MPI_STATUS_IGNORE, code)
  call check_ok(code, 'read_at_all')
  call check(all(ieor(back, mask) == data), 'the file holds the converted form')

  call MPI_File_close(file, code)
  call check_ok(code, 'close')
  call check_print()
  call MPI_Finalize(code)
  if (failed /= 0) stop 1

contains
  include 'check.inc'
end program
