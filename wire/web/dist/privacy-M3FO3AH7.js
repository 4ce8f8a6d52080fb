import{a as o}from"./chunk-65PSPPTP.js";import"./chunk-DGV6HIMO.js";import"./chunk-BTJADNQE.js";export{o as Privacy};
