import{a as o}from"./chunk-YOETR5TO.js";import"./chunk-X6PE32SB.js";import"./chunk-VS4TEP7O.js";import"./chunk-4VSVKM3D.js";export{o as Privacy};
