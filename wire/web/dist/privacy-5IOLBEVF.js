import{a as o}from"./chunk-ATPSB7MA.js";import"./chunk-OPVXY3YS.js";import"./chunk-DTU2QU6A.js";import"./chunk-ILMMF2XO.js";export{o as Privacy};
