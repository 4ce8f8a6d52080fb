import{a as o}from"./chunk-4D7IJ63W.js";import"./chunk-VD43SUVE.js";import"./chunk-SCKUP2UZ.js";import"./chunk-AADEWNYY.js";export{o as Privacy};
