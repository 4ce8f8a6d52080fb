import{a as o}from"./chunk-NJBPYT4D.js";import"./chunk-7JPOLBY6.js";import"./chunk-BQJJFHAK.js";export{o as Privacy};
