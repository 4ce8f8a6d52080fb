import{a as o}from"./chunk-4FB7AVNT.js";import"./chunk-CXF7STKK.js";import"./chunk-YU2QCQVI.js";import"./chunk-244JP7VZ.js";export{o as Privacy};
