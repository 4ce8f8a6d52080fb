import{a as o}from"./chunk-7WWE7QHQ.js";import"./chunk-ANABGZUR.js";import"./chunk-NRQBLXPL.js";export{o as Privacy};
